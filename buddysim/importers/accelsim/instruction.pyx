"""Reads an instruction line of an Accel-Sim kernel trace, in every version's form."""
from libc.float cimport FLT_MAX
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from buddysim.base.errors import BuddysimError
from buddysim.importers.accelsim.text cimport Cursor, next_token, parse_decimal, parse_hex, token_is

cdef extern from *:
    int popcount "__builtin_popcount"(unsigned int x) noexcept nogil

cdef uint64_t ADDRESS_LIMIT = <uint64_t>1 << 57


cdef bint parse_register(Cursor token, int* register) noexcept nogil:
    """Parse R7, UR7, P7, UP7 or B7: set the register's number, NO_REGISTER if nothing can wait for it."""
    cdef bint uniform = token.at < token.end and token.at[0] == 85  # U
    cdef bint general
    cdef int64_t number = -1
    if uniform:
        token.at += 1
    if token.at >= token.end:
        return False
    general = token.at[0] == 82  # R
    if not general and token.at[0] != 80 and token.at[0] != 66:  # P, B
        return False
    token.at += 1
    if not parse_decimal(token, &number) or not 0 <= number <= 255:
        return False
    register[0] = NO_REGISTER
    if general and not uniform and number < 255:
        register[0] = <int>number
    elif general and uniform and number != 63 and number != 255:
        register[0] = <int>number + 256
    return True


cdef class InstructionReader:
    def __cinit__(self, path, header, classify, *, first_line=0, include_local=False, image=None):
        self.path = str(path)
        self.classify = classify
        self.line_number = first_line
        self.version = header.version
        self.line_info = header.line_info
        self.prefix = 4 if self.version < 3 else 0
        self.shared_base, self.local_base = header.shared_base, header.local_base
        self.image = image
        self.opcode_index = {}
        self.unknown_opcodes = set()
        self.opcodes = Rows(sizeof(OpcodeEntry))

    cdef int fail(self, str problem) except -1:
        raise BuddysimError(f"{self.path}: line {self.line_number}: {problem}")

    cdef str shown(self, Cursor token):
        text = (<const char*>token.at)[:token.end - token.at].decode("ascii", "replace")
        return repr(text if len(text) <= 40 else text[:37] + "...")

    cdef int read_instruction(self, Cursor line, bint raw, Instruction* instruction) except -1:
        """Read an instruction line; return 0 for the first of a raw asynchronous copy's two lines, which doesn't count."""
        cdef Cursor token, name
        cdef int64_t width = 0
        for _ in range(self.prefix):
            if not next_token(&line, &token):
                self.fail(f"expected {self.prefix} numbers of block and warp first")
        if self.line_info and not next_token(&line, &token):
            self.fail("expected a source line number")
        if not next_token(&line, &token) or not parse_hex(token, &instruction.pc):
            self.fail(f"found {self.shown(token)}: expected the instruction's address")
        instruction.mask = self.read_mask(&line)
        instruction.n_lanes = popcount(instruction.mask)
        instruction.n_destinations = self.read_registers(&line, instruction.destinations)
        if not next_token(&line, &name) or not 65 <= name.at[0] <= 90:
            self.fail(f"found {self.shown(name)}: expected an opcode")
        instruction.opcode = self.find_opcode(name)
        instruction.n_sources = self.read_registers(&line, instruction.sources)
        if not next_token(&line, &token) or not parse_decimal(token, &width) or not 0 <= width <= 1024:
            self.fail(f"found {self.shown(token)}: expected the access width")
        if instruction.opcode.role == UNSUPPORTED:
            self.fail(f"{self.shown(name)} is not supported")
        instruction.has_memory = width > 0
        if width:
            self.read_addresses(&line, instruction)
        instruction.immediate = 0
        if self.version >= 5:
            instruction.immediate = self.read_immediate(&line)
        if self.version >= 6:
            self.read_immediate(&line)
        # Raw traces show an asynchronous copy twice, its shared side first.
        if raw and instruction.opcode.role == ASYNC_COPY:
            self.drop_async = not self.drop_async
            if not self.drop_async:
                return 0
        if self.version >= 6:
            self.read_register_values(&line, instruction)
        else:
            self.read_store_data(&line, instruction)
        return 1

    cdef int64_t read_mask(self, Cursor* line) except -1:
        cdef Cursor token
        cdef uint64_t mask = 0
        if not next_token(line, &token) or token.end - token.at != 8 or not parse_hex(token, &mask) or mask >> 32:
            self.fail(f"found {self.shown(token)}: expected the active mask as 8 hexadecimal digits")
        return <int64_t>mask

    cdef int read_registers(self, Cursor* line, int* registers) except -1:
        """Read a count and as many registers; return the count."""
        cdef Cursor token
        cdef int64_t count = 0
        cdef int i, register = NO_REGISTER
        if not next_token(line, &token) or not parse_decimal(token, &count) or not 0 <= count <= MAX_OPERANDS:
            self.fail(f"found {self.shown(token)}: expected a number of registers")
        for i in range(<int>count):
            if not next_token(line, &token) or not parse_register(token, &register):
                self.fail(f"found {self.shown(token)}: expected a register")
            registers[i] = register
        return <int>count

    cdef OpcodeEntry find_opcode(self, Cursor name) except *:
        cdef bytes text = (<const char*>name.at)[:name.end - name.at]
        cdef OpcodeEntry* entry
        index = self.opcode_index.get(text)
        if index is None:
            if len(text) > 256:
                self.fail(f"found {self.shown(name)}: expected an opcode")
            opcode_info = self.classify(text.decode("ascii", "replace"))
            if not opcode_info.known:
                self.unknown_opcodes.add(text.decode("ascii", "replace").split(".")[0])
            index = self.opcodes.n
            entry = <OpcodeEntry*>self.opcodes.add()
            entry.role = opcode_info.role
            entry.width = opcode_info.width
            entry.registers = opcode_info.registers
            entry.bypass_l1 = opcode_info.bypass_l1
            entry.no_return = opcode_info.no_return
            entry.unit = opcode_info.unit
            entry.latency = opcode_info.latency
            entry.interval = opcode_info.interval
            entry.shared_by = opcode_info.shared_by
            if len(self.opcode_index) < 1 << 16:
                self.opcode_index[text] = index
        return (<OpcodeEntry*>self.opcodes.data)[<size_t>index]

    cdef int64_t read_immediate(self, Cursor* line) except? -1:
        cdef Cursor token
        cdef int64_t value = 0
        cdef uint64_t bits = 0
        if not next_token(line, &token):
            self.fail("the line ends early: expected an immediate")
        if not parse_decimal(token, &value):
            if token.end - token.at > 20 or not parse_hex_or_wide(token, &bits):
                self.fail(f"found {self.shown(token)}: expected an immediate")
            value = <int64_t>bits
        return value

    cdef int read_addresses(self, Cursor* line, Instruction* instruction) except -1:
        """Read the memory operand: addresses of the active lanes."""
        cdef Cursor token
        cdef int64_t mode = -1, step = 0
        cdef uint64_t address = 0
        cdef int lane
        if not next_token(line, &token) or not parse_decimal(token, &mode) or not 0 <= mode <= 2:
            self.fail(f"found {self.shown(token)}: expected an address mode from 0 to 2")
        if mode == 0:
            for lane in range(instruction.n_lanes):
                if not next_token(line, &token) or not parse_hex(token, &instruction.addresses[lane]):
                    self.fail(f"found {self.shown(token)}: expected the address of each active lane")
        else:
            if not next_token(line, &token) or not parse_hex(token, &address):
                self.fail(f"found {self.shown(token)}: expected a base address")
            if mode == 1:
                if not next_token(line, &token) or not parse_decimal(token, &step):
                    self.fail(f"found {self.shown(token)}: expected a stride")
                for lane in range(instruction.n_lanes):
                    instruction.addresses[lane] = address + <uint64_t>lane * <uint64_t>step
            else:
                for lane in range(instruction.n_lanes):
                    if lane:
                        if not next_token(line, &token) or not parse_decimal(token, &step):
                            self.fail(f"found {self.shown(token)}: expected {instruction.n_lanes - 1} distances")
                        address += <uint64_t>step
                    instruction.addresses[lane] = address
        for lane in range(instruction.n_lanes):
            if instruction.addresses[lane] >= ADDRESS_LIMIT:
                self.fail(f"the address {instruction.addresses[lane]:#x}: expected one below {ADDRESS_LIMIT:#x}")
        return 0

    # -- values in the trace, which reveal memory contents --------------------------------------------------------------

    cdef int read_store_data(self, Cursor* line, Instruction* instruction) except -1:
        """Read the end of the line: nothing, or STORE_DATA type registers REGr:Tt:value Tt:value ..."""
        cdef Cursor token, kind
        cdef int64_t count = 0, number = -1, lane = -1
        cdef uint8_t values[32][32]
        cdef uint8_t sizes[32]
        cdef uint64_t bits = 0
        cdef int i, width = instruction.opcode.width, at, n
        if not next_token(line, &token):
            return 0
        if not token_is(token, b"STORE_DATA"):
            self.fail(f"found {self.shown(token)}: expected the end of the line")
        if not next_token(line, &kind) or not next_token(line, &token) or not parse_decimal(token, &count) \
                or not 1 <= count <= 8:
            self.fail("expected STORE_DATA, a type and a number of registers")
        memset(sizes, 0, sizeof(sizes))
        while next_token(line, &token):
            if take_label(&token, b"REG", &number) and not 0 <= number < count:
                self.fail(f"found register {number} in STORE_DATA: expected 0 to {count - 1}")
            if number < 0 or not take_label(&token, b"T", &lane) or not 0 <= lane < 32:
                self.fail(f"found {self.shown(token)} in STORE_DATA: expected REGr:Tt:value or Tt:value")
            n = self.read_store_value(token, kind, &bits)
            at = <int>number * n
            if at + n <= 32:
                for i in range(n):
                    values[lane][at + i] = <uint8_t>(bits >> 8 * i)
                if sizes[lane] == at:
                    sizes[lane] = <uint8_t>(at + n)
        if self.image is None or not self.is_global(instruction) or instruction.opcode.role in (LOAD, GENERIC_LOAD):
            return 0
        n = 0
        for i in range(32):
            if instruction.mask >> i & 1:
                if sizes[i] and instruction.has_memory:
                    self.image.store(instruction.addresses[n], values[i], sizes[i] if sizes[i] < width else width)
                n += 1
        return 0

    cdef int read_store_value(self, Cursor token, Cursor kind, uint64_t* bits) except -1:
        """Read one lane's value; return its number of bytes."""
        cdef int64_t number = 0
        cdef double value = 0
        cdef float narrow
        cdef bint wide = kind.end - kind.at >= 2 and (kind.end - 2)[0] == 54 and (kind.end - 1)[0] == 52  # ..64
        if token.end - token.at > 2 and token.at[0] == 48 and (token.at[1] | 32) == 120:
            if not parse_hex(token, bits):
                self.fail(f"found {self.shown(token)}: expected a value")
            return 8 if wide and token.end - token.at > 10 else 4
        if kind.at[0] == 70:  # F: a decimal fraction
            try:
                value = float((<const char*>token.at)[:token.end - token.at])
            except ValueError:
                self.fail(f"found {self.shown(token)}: expected a value")
            if wide:
                memcpy(bits, &value, sizeof(value))
            else:
                if FLT_MAX < fabs(value) < INFINITY:
                    self.fail(f"found {self.shown(token)}: expected a value of 32 bits")
                narrow = <float>value
                bits[0] = 0
                memcpy(bits, &narrow, sizeof(narrow))
        else:
            if not parse_decimal(token, &number):
                self.fail(f"found {self.shown(token)}: expected a value")
            bits[0] = <uint64_t>number
        return 8 if wide else 4

    cdef int read_register_values(self, Cursor* line, Instruction* instruction) except -1:
        """Read NoVal, or Val, the number of destinations, and per register a count and as many values.

        Destinations come first, then the sources. A load's destinations have the memory contents; a store writes its
        last source.
        """
        cdef Cursor token
        cdef int64_t n_destinations = 0, count = 0
        cdef uint64_t group[32]
        cdef uint64_t first[32]
        cdef int n_groups = 0, n_first = 0, n_group = 0, i
        cdef bint is_load = instruction.opcode.role in (LOAD, GENERIC_LOAD)
        if not next_token(line, &token):
            self.fail("the line ends early: expected Val or NoVal")
        if token_is(token, b"NoVal"):
            if next_token(line, &token):
                self.fail(f"found {self.shown(token)}: expected the end of the line")
            return 0
        if not token_is(token, b"Val") or not next_token(line, &token) or not parse_decimal(token, &n_destinations) \
                or not 0 <= n_destinations <= MAX_OPERANDS:
            self.fail("expected NoVal, or Val and a number of destinations")
        while next_token(line, &token):
            if not parse_decimal(token, &count) or not 0 <= count <= 32 or n_groups > 2 * MAX_OPERANDS:
                self.fail(f"found {self.shown(token)}: expected a number of values up to 32")
            for i in range(<int>count):
                if not next_token(line, &token) or not parse_hex(token, &group[i]):
                    self.fail(f"found {self.shown(token)}: expected {count} values")
            n_group = <int>count
            if n_groups == 0:
                n_first = n_group
                memcpy(first, group, sizeof(group))
            n_groups += 1
        if n_groups < n_destinations:
            self.fail(f"values of {n_groups} registers: expected {n_destinations}")
        if self.image is None or not self.is_global(instruction):
            return 0
        if is_load and n_destinations:
            return self.store_values(instruction, first, n_first)
        if not is_load and instruction.opcode.role != ATOMIC and n_groups > 1 and n_groups == instruction.n_sources:
            return self.store_values(instruction, group, n_group)
        return 0

    cdef int store_values(self, Instruction* instruction, const uint64_t* values, int count) except -1:
        """Write one 32-bit value per active lane, or one for all, to the instruction's addresses."""
        cdef int i, j, n = min(<int>instruction.opcode.width, 4)
        cdef uint8_t data[4]
        cdef uint64_t value
        if not instruction.has_memory or (count != instruction.n_lanes and count != 1):
            return 0
        for i in range(instruction.n_lanes):
            value = values[i if count > 1 else 0]
            for j in range(n):
                data[j] = <uint8_t>(value >> 8 * j)
            self.image.store(instruction.addresses[i], data, n)
        return 0

    # -- memory spaces ------------------------------------------------------------------------------------------------

    cdef bint is_global(self, Instruction* instruction) noexcept:
        return self.role_of(instruction) in (LOAD, STORE, ATOMIC, ASYNC_COPY)

    cdef int role_of(self, Instruction* instruction) noexcept:
        """Return the instruction's role; the first address gives the space of a generic access."""
        cdef int role = instruction.opcode.role
        cdef uint64_t address, shared_end, local_end
        if role != GENERIC_LOAD and role != GENERIC_STORE:
            return role
        if self.shared_base == 0 or self.local_base == 0 or instruction.n_lanes == 0:
            return SHARED
        shared_end = self.local_base if self.local_base > self.shared_base else self.shared_base + WINDOW_BYTES
        local_end = self.shared_base if self.shared_base > self.local_base else self.local_base + WINDOW_BYTES
        address = instruction.addresses[0]
        if self.shared_base <= address < shared_end:
            return SHARED
        if self.local_base <= address < local_end:
            return LOCAL_LOAD if role == GENERIC_LOAD else LOCAL_STORE
        return LOAD if role == GENERIC_LOAD else STORE


cdef inline bint parse_hex_or_wide(Cursor token, uint64_t* bits) noexcept nogil:
    """Read an immediate that isn't a short decimal number: 0x.., or up to 20 digits, whose value is unused."""
    if token.end - token.at > 2 and token.at[1] | 32 == 120:
        return parse_hex(token, bits)
    bits[0] = 0
    if token.at < token.end and token.at[0] == 45:
        token.at += 1
    while token.at < token.end:
        if not 48 <= token.at[0] <= 57:
            return False
        token.at += 1
    return True


cdef bint take_label(Cursor* token, const char* label, int64_t* number) noexcept nogil:
    """Remove `label`, a number and a colon from the token's front, if present."""
    cdef Cursor at = token[0], digits
    while label[0] != 0:
        if at.at >= at.end or at.at[0] != <unsigned char>label[0]:
            return False
        at.at += 1
        label += 1
    digits.at = at.at
    while at.at < at.end and at.at[0] != 58:
        at.at += 1
    digits.end = at.at
    if at.at >= at.end or not parse_decimal(digits, number):
        return False
    token.at = at.at + 1
    return True

"""Certificates of one run: its scheduler and its workers take connections of their holders alone, encrypted.

One key and one certificate, which signs itself, serve all three roles of Dask. They are files of this user alone, in
the store's folder, because every worker sees it; they are removed when the run ends.
"""

from __future__ import annotations

import contextlib
import secrets
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

from buddysim.base.errors import BuddysimError

FOLDER = "certificates"
_PROGRAM = "openssl"
_DAYS = 365
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")


def can_be_made() -> bool:
    """Return whether the program openssl is installed."""
    return shutil.which(_PROGRAM) is not None


class RunCertificates:
    """A key and a certificate that exist until `close`.

    Parameters
    ----------
    store : folder of the store, which every worker sees under the same path

    Raises
    ------
    BuddysimError
        where the program openssl is missing, or the folder can't be written
    """

    def __init__(self, store: Path) -> None:
        self._folder = store / FOLDER / secrets.token_hex(8)
        self.key, self.certificate = self._folder / "key.pem", self._folder / "certificate.pem"
        try:
            self._folder.mkdir(mode=0o700, parents=True)
            self._make()
        except BaseException:
            self.close()
            raise

    def _make(self) -> None:
        command = [_PROGRAM, "req", "-x509", *_CURVE, "-nodes", "-days", str(_DAYS), "-subj", "/CN=buddysim",
                   "-keyout", str(self.key), "-out", str(self.certificate)]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        except FileNotFoundError:
            raise BuddysimError(
                "workers need the program openssl for the certificates of the run: expected apt install openssl"
            ) from None
        if done.returncode:
            raise BuddysimError(f"openssl made no certificate in {self._folder}: {done.stderr.strip()}")

    def security(self) -> Any:
        """Return Dask's settings: encryption is required, and so is this certificate on both sides."""
        from distributed.security import Security

        return Security(**self._settings())

    def security_of_jobs(self) -> Any:
        """Return `security` for workers in the jobs of a batch system."""
        from distributed.security import Security

        class OfJobs(Security):  # type: ignore[misc]
            def get_tls_config_for_role(self, role: str) -> dict[str, str | None]:
                """Paths for workers stand in the command line of a job script."""
                config: dict[str, str | None] = super().get_tls_config_for_role(role)
                if role != "worker":
                    return config
                return {name: None if value is None else shlex.quote(value) for name, value in config.items()}

        return OfJobs(**self._settings())

    def _settings(self) -> dict[str, Any]:
        key, certificate = str(self.key), str(self.certificate)
        roles = {f"tls_{role}_{part}": path for role in ("client", "scheduler", "worker")
                 for part, path in (("key", key), ("cert", certificate))}  # fmt: skip
        return {"require_encryption": True, "tls_ca_file": certificate, **roles}

    def close(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            self._folder.parent.rmdir()  # not while another run has certificates

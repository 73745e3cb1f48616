# docker build -t buddysim .
# docker run --rm -v "$PWD":/work buddysim run fdtd2048
FROM python:3.13-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev
COPY . /source
RUN pip wheel --no-cache-dir --wheel-dir /wheels /source

FROM python:3.13-slim-bookworm
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-compile /wheels/*.whl
# Any user, also one without a name, and with a file system that can't be written to.
USER 65534
WORKDIR /work
ENTRYPOINT ["buddysim"]
CMD ["--help"]

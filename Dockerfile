# syntax=docker/dockerfile:1
# Two images: `service` for API, workers, beat, dashboard and migrations; `sandbox` for the one worker that starts foreign code.

FROM python:3.12-slim-bookworm AS build
WORKDIR /src
ENV UV_PROJECT_ENVIRONMENT=/venv VIRTUAL_ENV=/venv UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never
COPY requirements.lock pyproject.toml ./
# uv by its hash in the lock, then what the extras name, by theirs
RUN python -m venv /venv && python -m venv /uv \
 && awk '/^[^ ]/ { on = /^uv==/ } on' requirements.lock >/tmp/uv.lock \
 && /uv/bin/pip install --no-cache-dir --require-hashes -r /tmp/uv.lock \
 && /uv/bin/uv pip install --no-cache --compile-bytecode --constraint requirements.lock --requirements pyproject.toml --extra all
COPY README.md LICENSE ./
COPY inspector inspector
COPY checks checks
COPY dashboard dashboard
COPY migrations migrations
RUN /uv/bin/uv pip install --no-cache --compile-bytecode --no-deps --build-constraint requirements.lock .

FROM python:3.12-slim-bookworm AS service
RUN useradd --system --uid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin inspector \
 && install -d -o inspector -g inspector -m 0700 /store /keys
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PYTHONSAFEPATH=1
WORKDIR /
USER 10001:10001
STOPSIGNAL SIGTERM
CMD ["inspector", "--help"]

# Foreign code runs below this one, under user ids and in namespaces of its own: that takes root and, in compose.yaml, a few capabilities.
FROM service AS sandbox
# hadolint ignore=DL3002
USER 0:0

"""Plain calls of every route, for the command line and the dashboard: synchronous, with time limits, raising ApiError."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import IO, Any, Self
from urllib.parse import quote

import httpx
import msgspec

from inspector.client.advice import Ruling
from inspector.client.protocol import NDJSON, Lookup, Receipt, Reply, refusal
from inspector.client.wire import headers_of
from inspector.errors import InspectorError
from inspector.frames import pack

Json = Any
Parameter = Any  # text, a number, or None: left out
LONGEST_POLL_S = 25.0
PAUSE_S = 0.1


class ApiError(InspectorError):
    """An answer that is an error, or none at all (status 0)."""

    def __init__(self, status: int, reason: str, path: str | None = None, *, retry_after: str = "") -> None:
        self.status, self.reason, self.path, self.retry_after = status, reason, path, retry_after
        place = f"{path}: " if path else ""
        super().__init__(f"{status}: {place}{reason}" if status else f"{place}{reason}")


class Api:
    """One connection pool for one thread or many; `timeout_s` is per read or write, a long poll adds its own wait."""

    def __init__(self, url: str, key: str, *, timeout_s: float = 30.0, transport: httpx.BaseTransport | None = None) -> None:
        self._timeout_s = timeout_s
        self._http = httpx.Client(base_url=url.rstrip("/"), headers=headers_of(key), timeout=httpx.Timeout(timeout_s, connect=5.0), transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Drop the connections."""
        self._http.close()

    # --- any route ----------------------------------------------------------------------------------------------------

    def call(self, method: str, path: str, *, body: Json = None, wait: float = 0.0, **parameters: Parameter) -> Json:
        """Call a route with a JSON body; the decoded answer, None for an empty one. Raises ApiError."""
        content = None if body is None else msgspec.json.encode(body)
        return _decoded(self.send(method, path, content=content, wait=wait, **parameters))

    def get(self, path: str, *, wait: float = 0.0, **parameters: Parameter) -> Json:
        """GET a route; parameters of None are left out."""
        return self.call("GET", path, wait=wait, **parameters)

    def post(self, path: str, body: Json = None, *, wait: float = 0.0, **parameters: Parameter) -> Json:
        """POST JSON to a route."""
        return self.call("POST", path, body=body, wait=wait, **parameters)

    def put(self, path: str, body: Json, **parameters: Parameter) -> Json:
        """PUT JSON to a route."""
        return self.call("PUT", path, body=body, **parameters)

    def delete(self, path: str) -> Json:
        """DELETE a thing."""
        return self.call("DELETE", path)

    def send(
        self,
        method: str,
        path: str,
        *,
        content: bytes | Iterable[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        wait: float = 0.0,
        **parameters: Parameter,
    ) -> Reply:
        """Call a route with bytes. Raises ApiError for every status of 400 and above, and when there is no answer."""
        wanted = {name: value for name, value in (*parameters.items(), ("wait", wait or None)) if value is not None}
        sent = {"Content-Type": "application/json", **(headers or {})} if content is not None else dict(headers or {})
        timeout = httpx.Timeout(self._timeout_s + wait, connect=5.0)
        try:
            response = self._http.request(method, path, params=wanted, content=content, headers=sent, timeout=timeout)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ApiError(0, f"{type(error).__name__}: {error}", f"{method} {path}") from error
        reply = Reply(response.status_code, response.headers, response.content)
        if reply.status >= 400:
            fault = refusal(reply)
            raise ApiError(reply.status, fault.reason, fault.path, retry_after=response.headers.get("retry-after", ""))
        return reply

    def upload(self, path: str, pieces: Iterable[bytes]) -> Json:
        """PUT a file, piece by piece; the decoded answer."""
        return _decoded(self.send("PUT", path, content=pieces, headers={"Content-Type": "application/octet-stream"}))

    def download(self, path: str, into: IO[bytes], *, limit_bytes: int, **parameters: Parameter) -> None:
        """GET a file, piece by piece. Raises ApiError, also where it is longer than `limit_bytes`."""
        try:
            with self._http.stream("GET", path, params=parameters) as response:
                if response.status_code >= 400:
                    fault = refusal(Reply(response.status_code, response.headers, response.read()))
                    raise ApiError(response.status_code, fault.reason, fault.path)
                for piece in response.iter_bytes(1 << 20):
                    into.write(piece)
                    if response.num_bytes_downloaded > limit_bytes:
                        raise ApiError(response.status_code, f"a file of more than {limit_bytes} bytes", f"GET {path}")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ApiError(0, f"{type(error).__name__}: {error}", f"GET {path}") from error

    def pages(self, path: str, listed: str, *, after: str | None = None, limit: int = 200, most: int | None = None, **parameters: Parameter) -> Iterator[Json]:
        """Everything of a keyset list, page by page, at most `most`; `listed` names the field that holds it."""
        given = 0
        while True:
            page = self.get(path, after=after, limit=limit, **parameters)
            for entry in page[listed]:
                if most is not None and given >= most:
                    return
                given += 1
                yield entry
            after = page.get("next")
            if after is None:
                return

    # --- trajectories -------------------------------------------------------------------------------------------------

    def post_lines(self, lines: Sequence[bytes], *, wait: float = 0.0) -> list[Receipt]:
        """Post lines (without newlines) as one body; a receipt for each."""
        headers = {"Content-Type": NDJSON, "Content-Encoding": "zstd", "Accept": NDJSON}
        reply = self.send("POST", "/v1/trajectories", content=b"".join(pack(lines)), headers=headers, wait=wait)
        try:
            return msgspec.json.Decoder(Receipt).decode_lines(reply.body)
        except msgspec.DecodeError as error:
            raise ApiError(reply.status, f"an answer that is not ours: {error}", "POST /v1/trajectories") from error

    def trajectories(self, *, most: int | None = None, after: str | None = None, **filters: Parameter) -> Iterator[Json]:
        """Newest first; filters: environment, version, task, run, verdict."""
        return self.pages("/v1/trajectories", "trajectories", after=after, most=most, **filters)

    def triage(self, *, most: int | None = None, after: str | None = None) -> Iterator[Json]:
        """What waits for a person, worst first."""
        return self.pages("/v1/triage", "trajectories", after=after, most=most)

    def trajectory(self, key: str) -> Json:
        """Summary, envelope, verdict, findings and coverage, by our key."""
        return self.get(f"/v1/trajectories/{_part(key)}")

    def trajectory_by_id(self, producer_id: str) -> Json:
        """The same, by the producer's id."""
        return self.get(f"/v1/trajectories/by-id/{_part(producer_id)}")

    def raw(self, key: str) -> bytes:
        """The line as it was posted."""
        return self.send("GET", f"/v1/trajectories/{_part(key)}/raw").body

    def steps(self, key: str, start: int, count: int) -> Json:
        """A window of steps: {total, start, steps, bytes}."""
        return self.get(f"/v1/trajectories/{_part(key)}/steps", start=start, count=count)

    def review(self, key: str, judgement: str, *, note: str = "", reward: float | None = None, cause: str | None = None) -> Json:
        """A person's judgement: accept, quarantine or override (with a reward), and the cause of a fault; the decision that follows."""
        body = {"judgement": judgement, "note": note} | {name: value for name, value in (("reward", reward), ("cause", cause)) if value is not None}
        return self.post(f"/v1/trajectories/{_part(key)}/review", body)

    # --- decisions ----------------------------------------------------------------------------------------------------

    def decisions(self, *, after: int = 0, epoch: str | None = None, wait: float = 0.0, limit: int = 200) -> Json:
        """One page of the feed: {epoch, seq, decisions, more}. ApiError 410 asks for `snapshot`."""
        return self.get("/v1/decisions", after=after, epoch=epoch, wait=wait, limit=limit)

    def snapshot(self, *, after: str | None = None, limit: int = 200) -> Json:
        """One page of the standing state."""
        return self.get("/v1/decisions/snapshot", after=after, limit=limit)

    def look_up(self, ids: Sequence[str], *, wait: float = 0.0) -> Lookup:
        """The decisions for these producer ids, waiting up to `wait` seconds for pending ones."""
        reply = self.send("POST", "/v1/decisions/lookup", content=msgspec.json.encode({"ids": ids}), wait=wait)
        try:
            return msgspec.json.decode(reply.body, type=Lookup)
        except msgspec.DecodeError as error:
            raise ApiError(reply.status, f"an answer that is not ours: {error}", "POST /v1/decisions/lookup") from error

    def wait_for_decisions(self, ids: Iterable[str], timeout_s: float, *, at_once: int = 500) -> dict[str, Ruling | None]:
        """The decision for each id; None for what is unknown, or still pending when the time is over."""
        found: dict[str, Ruling | None] = dict.fromkeys(ids)
        end = time.monotonic() + timeout_s
        pending = list(found)
        while pending:
            block, left_s = pending[:at_once], end - time.monotonic()
            answer = self.look_up(block, wait=max(0.0, min(left_s, LONGEST_POLL_S)))
            found.update({name: ruling for name, ruling in answer.decisions.items() if name in found and ruling is not None})
            over = {*answer.unknown, *(name for name in block if found[name] is not None)}
            pending = [name for name in pending[at_once:] + block if name not in over]
            if left_s <= 0:
                return found
            if not over:
                time.sleep(min(PAUSE_S, left_s))  # where the service does not wait as long as it was asked to
        return found

    def revoke(self, check: str, version: int, *, preview: bool = True) -> Json:
        """Supersede everything that rests on a check's version; with `preview` only counts."""
        return self.post("/v1/decisions/revoke", {"check": check, "version": version, "preview": preview})

    # --- environments, runs, checks, keys -----------------------------------------------------------------------------

    def declare(self, environment: str, version: str, declaration: Json, *, task: str | None = None) -> Json:
        """What an owner says of an environment version, or of one of its tasks."""
        return self.put(_place(environment, version, task), declaration)

    def declaration(self, environment: str, version: str, *, task: str | None = None) -> Json:
        """What was declared."""
        return self.get(_place(environment, version, task))

    def environments(self, *, most: int | None = None, after: str | None = None) -> Iterator[Json]:
        """Environment versions that this project posted."""
        return self.pages("/v1/environments", "environments", after=after, most=most)

    def set_state(self, environment: str, version: str, state: str, *, note: str, task: str | None = None, sampling_weight: float | None = None) -> Json:
        """A person's quarantine or release of an environment version or task."""
        body = {"state": state, "note": note} | ({} if sampling_weight is None else {"sampling_weight": sampling_weight})
        return self.put(f"{_place(environment, version, task)}/state", body)

    def register(self, environment: str, version: str, package: Json) -> Json:
        """Say of which uploaded tar a version is made: {artifact, face, entry?, dataset?}."""
        return self.put(f"{_place(environment, version, None)}/package", package)

    def package(self, environment: str, version: str) -> Json:
        """What a version is made of."""
        return self.get(f"{_place(environment, version, None)}/package")

    def scorecard(self, environment: str, version: str, *, outcome: str | None = None, after: str | None = None, limit: int = 200) -> Json:
        """What was last said of each task of a version by its probes, or of those of one outcome: one page of tasks, worst first, with counts of all."""
        return self.get(f"{_place(environment, version, None)}/scorecard", outcome=outcome, after=after, limit=limit)

    def probes(self, *, environment: str | None = None, version: str | None = None, most: int | None = None, after: str | None = None) -> Iterator[Json]:
        """The probes that this project asked for, of all versions or of one, newest first."""
        return self.pages("/v1/probes", "probes", after=after, most=most, environment=environment, version=version)

    def probe(self, probe: str) -> Json:
        """A probe as it stands."""
        return self.get(f"/v1/probes/{_part(probe)}")

    def probed_tasks(self, probe: str, *, after: str | None = None, limit: int = 50) -> Json:
        """One page of a probe's tasks with their reports, in the order of the version's tasks."""
        return self.get(f"/v1/probes/{_part(probe)}/tasks", after=after, limit=limit)

    def probed_task(self, probe: str, task: str) -> Json:
        """One of its tasks with its report."""
        return self.get(f"/v1/probes/{_part(probe)}/tasks/{_part(task)}")

    def start_probe(self, environment: str, version: str, wanted: Json) -> Json:
        """Ask for a probe: {depth, tasks?, budget?, priority}."""
        return self.post(f"{_place(environment, version, None)}/probes", wanted)

    def cancel_probe(self, probe: str) -> Json:
        """End a probe before its next task."""
        return self.post(f"/v1/probes/{_part(probe)}/cancel")

    def runs(self) -> Json:
        """All runs of the project."""
        return self.get("/v1/runs")

    def run(self, run: str) -> Json:
        """One run."""
        return self.get(f"/v1/runs/{_part(run)}")

    def set_mode(self, run: str, mode: str) -> Json:
        """observe or enforce."""
        return self.put(f"/v1/runs/{_part(run)}", {"mode": mode})

    def post_step(self, run: str, step: int, report: Json) -> Json:
        """What an update was trained on."""
        return self.post(f"/v1/runs/{_part(run)}/steps/{step}", report)

    def run_steps(self, run: str, *, most: int | None = None, after: str | None = None) -> Iterator[Json]:
        """The steps of a run."""
        return self.pages(f"/v1/runs/{_part(run)}/steps", "steps", after=after, most=most)

    def contamination(self, run: str, **chosen: Parameter) -> Json:
        """What a run used of what is bad, in sum, with the first page of updates; `chosen` as the query of the address."""
        return self.get(f"/v1/runs/{_part(run)}/contamination", **chosen)

    def contaminated_updates(self, run: str, *, most: int | None = None, **chosen: Parameter) -> Iterator[Json]:
        """The updates that used something bad or descend from one that did."""
        return self.pages(f"/v1/runs/{_part(run)}/contamination", "updates", most=most, **chosen)

    def contaminated_uses(self, run: str, *, unknown: bool = False, most: int | None = None, **chosen: Parameter) -> Iterator[Json]:
        """Each use of a bad trajectory, or of one that was never posted."""
        return self.pages(f"/v1/runs/{_part(run)}/contamination/trajectories", "uses", most=most, unknown="true" if unknown else None, **chosen)

    def recycled(self, run: str, *, max_age_steps: int | None = None, most: int | None = None) -> Iterator[Json]:
        """What of a run was out and may be taken up again, with the reward to use."""
        return self.pages(f"/v1/runs/{_part(run)}/recycled", "trajectories", most=most, max_age_steps=max_age_steps)

    def regrade(self, environment: str, version: str, by: str, *, most: int = 10_000) -> Json:
        """Have what a version's broken verifier spoiled graded by the version `by`, in which it is repaired."""
        return self.post(f"{_place(environment, version, None)}/regrade", {"by": by, "most": most})

    def checks(self) -> Json:
        """All checks of the installation."""
        return self.get("/v1/checks")

    def check(self, name: str) -> Json:
        """One check by its qualified name."""
        return self.get(f"/v1/checks/{_path(name)}")

    def create_key(self, name: str, role: str, *, expires_in_days: int | None = None) -> Json:
        """A new key, shown this once."""
        body = {"name": name, "role": role} | ({} if expires_in_days is None else {"expires_in_days": expires_in_days})
        return self.post("/v1/keys", body)

    def keys(self) -> Json:
        """The project's keys, without their secrets."""
        return self.get("/v1/keys")

    def revoke_key(self, key_id: str) -> Json:
        """End a key."""
        return self.delete(f"/v1/keys/{_part(key_id)}")

    def create_project(self, name: str) -> Json:
        """A new project, with its first key."""
        return self.post("/v1/projects", {"name": name})

    def projects(self) -> Json:
        """All projects that this key may see."""
        return self.get("/v1/projects")

    def me(self) -> Json:
        """Whose key this is."""
        return self.get("/v1/me")

    def ready(self) -> bool:
        """Whether the service says that it can take work."""
        try:
            self.send("GET", "/readyz")
        except ApiError:
            return False
        return True


def _decoded(reply: Reply) -> Json:
    if not reply.body:
        return None
    try:
        return msgspec.json.decode(reply.body)
    except msgspec.DecodeError as error:
        raise ApiError(reply.status, f"an answer that is no JSON: {reply.body[:200].decode('utf-8', 'replace')}") from error


def _part(name: object) -> str:
    """One segment of a path, whatever characters the name has. A name of dots would climb the path, escaped or not."""
    text = quote(str(name), safe="")
    return text.replace(".", "%2E") if text in (".", "..") else text


def _path(name: str) -> str:
    return "/".join(_part(part) for part in name.split("/"))


def _place(environment: str, version: str, task: str | None) -> str:
    whole = f"/v1/environments/{_path(environment)}/versions/{_part(version)}"
    return whole if task is None else f"{whole}/tasks/{_part(task)}"

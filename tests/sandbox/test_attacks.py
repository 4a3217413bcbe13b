"""What hostile code tries in a box: nothing of it reaches the machine, its limits or its neighbours, and each attempt ends as a plain result."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from inspector.sandbox import stage
from inspector.sandbox.launch import MARK
from inspector.sandbox.protocol import Changed, Ended, Limits, Refused

SMALL = Limits(wall_s=20, memory_bytes=128 << 20, pids=32, disk_bytes=32 << 20, inodes=2000, output_bytes=1 << 16, flood_bytes=4 << 20)


@pytest.fixture
def cell(boxes):
    with boxes.create(limits=SMALL) as cell:
        yield cell
    assert cell.group.pids() == []
    assert not cell.disk.exists()


def sh(box, text, **more):
    return box.run(["/bin/sh", "-c", text], **more)


def py(box, text, **more):
    return box.run(["/usr/bin/env", "python3", "-c", text], **more)


def call(number, *arguments):
    """Python text that makes a system call and prints how it went wrong."""
    given = ", ".join(str(argument) for argument in arguments)
    made = f"import ctypes, errno; c = ctypes.CDLL(None, use_errno=True); r = c.syscall({number}, {given}); "
    return made + "print(errno.errorcode[ctypes.get_errno()] if r < 0 else r)"


# processes


@pytest.mark.parametrize("bomb", ["f() { f | f & }; f; sleep 1", "python3 -c 'import os\nwhile True:\n try: os.fork()\n except OSError: pass'"])
def test_a_fork_bomb_stays_in_its_box(cell, bomb):
    sh(cell, bomb, timeout_s=1)
    assert cell.group.pids() == []
    assert sh(cell, "echo fine").ok


def test_a_daemon_dies_with_its_command(cell):
    began = time.monotonic()
    assert sh(cell, "(setsid sh -c '(sleep 300) & sleep 300' </dev/null >/dev/null 2>&1 &); echo gone").stdout == b"gone\n"
    assert cell.group.pids() == []
    assert time.monotonic() - began < 10


def test_a_daemon_that_holds_the_output_does_not_hold_the_result(cell):
    assert sh(cell, "setsid sleep 300 & echo gone", timeout_s=15).ended is Ended.EXITED


def test_signals_that_are_ignored_and_input_that_is_not_read_do_not_help(cell):
    text = "import signal, time\nfor n in set(signal.valid_signals()) - {9, 19}: signal.signal(n, signal.SIG_IGN)\nwhile True: time.sleep(9)"
    assert py(cell, text, stdin=b"x" * (1 << 20), timeout_s=0.5).ended is Ended.TIMED_OUT


def test_a_command_that_stops_itself_is_ended_in_time(cell):
    assert sh(cell, "kill -STOP $$", timeout_s=0.5).ended is Ended.TIMED_OUT


def test_zombies_are_the_box_s_own(cell):
    assert py(cell, "import os\nfor _ in range(20):\n if not os.fork(): os._exit(0)\nprint('done')").stdout == b"done\n"
    assert cell.group.pids() == []


def test_killing_the_init_of_the_box_kills_no_one_else(cell):
    result = sh(cell, "kill -9 1; kill -9 -1; echo $?")
    assert result.ended in (Ended.SIGNALLED, Ended.EXITED)
    assert sh(cell, "echo fine").ok


def test_processes_of_the_machine_cannot_be_seen_signalled_or_traced(cell):
    ours = os.getpid()
    seen = py(cell, "import os; print(sorted(int(p) for p in os.listdir('/proc') if p.isdigit()))").stdout
    assert eval(seen)[-1] < 10
    text = f"import ctypes, os\nc = ctypes.CDLL(None, use_errno=True)\nprint(c.ptrace(16, {ours}, 0, 0), ctypes.get_errno())\n"
    text += f"try: os.kill({ours}, 9)\nexcept OSError as e: print(e.errno)"
    assert py(cell, text).stdout.split() == [b"-1", str(errno.ESRCH).encode(), str(errno.ESRCH).encode()]


def test_eight_hogs_get_one_processor(boxes):
    with boxes.create(limits=Limits(cpus=0.5)) as box:
        result = sh(box, "for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; sleep 1.5")
    assert result.cpu_s < 0.5 * result.wall_s + 0.4


# memory, disk, output, descriptors


def test_memory_is_bounded_and_said(cell):
    assert py(cell, "x = bytearray(400 << 20)").ended is Ended.OUT_OF_MEMORY
    assert py(cell, "import os\nwhile True: os.write(os.memfd_create('x'), bytes(1 << 20))").ended is Ended.OUT_OF_MEMORY


def test_shared_memory_is_bounded(cell):
    assert b"No space left" in sh(cell, "for i in 1 2 3 4; do head -c 30000000 /dev/zero > /dev/shm/$i; done").stderr or cell.group.out_of_memory()
    assert sh(cell, "echo fine").ok


def test_the_disk_is_bounded(cell):
    result = sh(cell, "for i in 1 2 3 4; do head -c 20000000 /dev/zero > /tmp/$i; done; df -k / | tail -1")
    assert b"No space left" in result.stderr
    assert cell.snapshot().path.is_dir()


def test_the_number_of_files_is_bounded(cell):
    text = "import os\ntry:\n for i in range(10000): open(f'/tmp/{i}', 'w').close()\nexcept OSError as e: print(i, e.errno)"
    count, number = py(cell, text).stdout.split()
    assert int(count) < 2000
    assert int(number) == errno.ENOSPC


def test_endless_output_is_cut_and_counted(cell):
    result = cell.run(["yes"])
    assert result.ended is Ended.FLOODED
    assert len(result.stdout) == SMALL.output_bytes
    assert result.dropped_bytes >= SMALL.flood_bytes - SMALL.output_bytes - 1
    assert sh(cell, "yes >&2").ended is Ended.FLOODED


def test_output_is_bytes_whatever_they_are(cell):
    data = bytes(range(256)) + b"\xff\xfe\xf0\x28\x8c"
    assert cell.run(["cat"], stdin=data).stdout == data


def test_descriptors_are_bounded_and_none_is_inherited(cell):
    with open(os.open("/etc/hosts", os.O_RDONLY)) as leak:
        os.set_inheritable(leak.fileno(), True)  # as a foreign library may leave one
        assert py(cell, "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))").stdout == b"[0, 1, 2, 3]\n"
    text = "import os\nn = 0\ntry:\n while True: os.dup(0); n += 1\nexcept OSError as e: print(n < 5000, e.errno)"
    assert py(cell, text).stdout.split() == [b"True", str(errno.EMFILE).encode()]


def test_a_sparse_file_is_neither_long_nor_dear(cell):
    assert b"File too large" in sh(cell, "truncate -s 1T /tmp/huge").stderr or b"File size limit" in sh(cell, "truncate -s 1T /tmp/huge").stderr
    assert sh(cell, "for i in $(seq 500); do truncate -s 30M /tmp/$i; done").ok
    began = time.monotonic()
    layer = cell.snapshot()
    assert time.monotonic() - began < 10
    assert sum(path.stat().st_blocks for path in layer.path.rglob("*") if path.is_file()) < 10_000
    with pytest.raises(Refused, match="more than"):
        cell.read("/tmp/1", 1000)


# files of the machine


def test_deleting_everything_deletes_the_box_s_own(boxes):
    with boxes.create() as box:
        sh(box, "mkdir /work; echo 1 > /work/a")
        layer = box.snapshot()
    with boxes.create([layer]) as box:
        sh(box, "rm -rf --no-preserve-root /[!u]* /usr/bin 2>/dev/null")
        assert box.diff().changes["/work"] is Changed.DELETED
    assert (layer.path / "work" / "a").read_bytes() == b"1\n"
    assert Path("/usr/bin/env").exists()


def test_the_machine_s_files_are_read_only_or_not_there(cell, tmp_path):
    secret = tmp_path / "canary"
    secret.write_text("canary")
    secret.chmod(0o600)
    for path in ("/usr/x", "/bin/x", "/lib/x", "/proc/sys/kernel/core_pattern", "/dev/x", "/proc/sysrq-trigger"):
        assert not sh(cell, f"echo x > {path}").ok
    for path in (
        "/etc/shadow",
        secret,
        "/root/.ssh",
        "/var/log/dpkg.log",
        "/home/.",
        "/sys/kernel",
        Path(__file__).parent,
        "/proc/kcore",
        "/proc/1/root/etc/shadow",
    ):
        assert not sh(cell, f"head -c 1 {path} >/dev/null").ok


def test_the_environment_of_the_machine_does_not_come_in(cell, monkeypatch):
    monkeypatch.setenv("CANARY", "canary-of-the-machine")
    text = "import glob\nfor p in glob.glob('/proc/*/environ') + glob.glob('/proc/*/cmdline') + ['/proc/cmdline']: print(open(p, 'rb').read())"
    seen = py(cell, text).stdout
    assert b"canary-of-the-machine" not in seen
    assert f"{MARK}={cell.name}".encode() in seen  # what bwrap itself has, and all of it
    assert Path("/proc/cmdline").read_bytes().strip() not in seen


def test_mounts_say_nothing_of_us(cell, boxes):
    seen = sh(cell, "cat /proc/mounts /proc/self/cgroup; tr '\\0' ' ' < /proc/1/cmdline").stdout.decode()
    assert str(stage.PLACE) in seen
    ours = Path(__file__).resolve().parents[2]
    mounts = sh(cell, "cat /proc/mounts /proc/self/mountinfo").stdout.decode()
    assert str(ours) not in mounts
    assert "inspector" not in mounts
    assert str(boxes._folder) not in mounts


def test_the_program_that_bwrap_is_cannot_be_rewritten(cell):
    text = "import os\nfor p in ('/proc/1/exe', '/proc/self/exe', '/proc/1/fd', '/proc/1/map_files'):\n"
    text += " try: print(os.open(p, os.O_RDWR))\n except OSError as e: print(type(e).__name__)"
    assert not any(word.isdigit() for word in py(cell, text).stdout.split())


# privileges


def test_there_is_no_privilege(cell):
    status = sh(cell, "cat /proc/self/status").stdout.decode()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert {fields[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert fields["NoNewPrivs"].strip() == "1"
    assert fields["Seccomp"].strip() == "2"
    began = threading.Event()
    seen = []

    def look():
        began.wait()
        for _ in range(200):
            for pid in cell.group.pids():
                try:
                    seen.append(os.stat(f"/proc/{pid}").st_uid)
                except FileNotFoundError:
                    continue
            time.sleep(0.005)

    watch = threading.Thread(target=look)
    watch.start()
    began.set()
    sh(cell, "sleep 0.5")
    watch.join()
    assert 200_000 in seen
    assert set(seen[len(seen) // 4 :]) == {200_000}


@pytest.mark.parametrize(
    "command",
    [
        "mount -t tmpfs x /mnt",
        "umount /proc",
        "unshare -U true",
        "unshare -m true",
        "chroot / true",
        "mknod /tmp/x b 8 0",
        "mknod /tmp/x c 0 0",
        "nsenter -t 1 -m true",
        "chown 1 /etc/hosts",
        "setpriv --reuid 1 true",
        "hostname x",
        "date -s 2030-01-01",
        "dmesg",
        "ip link add x type dummy",
    ],
)
def test_what_only_root_may_do_is_not_done(cell, command):
    assert not sh(cell, command).ok


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of one kind of processors")
@pytest.mark.parametrize(
    ("name", "number", "arguments", "answer"),
    [
        ("keyctl", 250, (0, -3, 0), "EPERM"),
        ("add_key", 248, (0, 0, 0, 0, 0), "EPERM"),
        ("bpf", 321, (0, 0, 0), "EPERM"),
        ("perf_event_open", 298, (0, 0, -1, -1, 0), "EPERM"),
        ("userfaultfd", 323, (0,), "EPERM"),
        ("io_uring_setup", 425, (8, 0), "EPERM"),
        ("clone3 with a new user namespace", 435, (0, 88), "ENOSYS"),
        ("clone with a new user namespace", 56, (0x10000011, 0, 0, 0, 0), "EPERM"),
        ("clone with a new network", 56, (0x40000011, 0, 0, 0, 0), "EPERM"),
        ("open_by_handle_at", 304, (-100, 0, 0), "EPERM"),
        ("fsopen", 430, (0, 0), "EPERM"),
        ("listmount", 458, (0, 0, 0, 0), "EPERM"),
        ("a call of x32", 0x40000000 + 39, (), "EPERM"),
        ("a call that we do not know yet", 600, (), "ENOSYS"),
        ("quotactl", 179, (0, 0, 0, 0), "EPERM"),
        ("personality for a debugger", 135, (0xFFFFFFFF,), "0"),
    ],
)
def test_calls_that_reach_past_namespaces_are_not_there(cell, name, number, arguments, answer):
    assert py(cell, call(number, *arguments)).stdout.decode().strip() == answer


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="another processor has no second door")
def test_the_old_door_of_32_bits_is_shut(cell):
    text = (
        "import ctypes, mmap\nm = mmap.mmap(-1, 4096, prot=7)\nm.write(b'\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3')\n"
        "ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()\nprint('through')"
    )
    result = py(cell, text)
    assert result.ended is Ended.SIGNALLED
    assert result.stdout == b""


@pytest.mark.parametrize("family", [40, 16, 17, 38, 31, 29, 30], ids=["vsock", "netlink", "packet", "alg", "bluetooth", "can", "tipc"])
def test_sockets_that_no_namespace_holds_are_not_given(cell, family):
    text = f"import socket\ntry: socket.socket({family}, socket.SOCK_RAW)\nexcept OSError as e: print(e.errno)"
    assert py(cell, text).stdout.strip() == str(errno.EAFNOSUPPORT).encode()


def test_nothing_can_be_typed_into_the_terminal_of_others(cell):
    text = "import fcntl, os\nm, s = os.openpty()\ntry: print(fcntl.ioctl(s, 0x5412, b'x'))\nexcept OSError as e: print(e.errno)"
    assert py(cell, text).stdout.strip() == str(errno.EPERM).encode()
    assert not sh(cell, "exec 3</dev/tty").ok


def test_a_crash_starts_no_program_of_the_machine(cell):
    assert set(sh(cell, "grep core /proc/self/limits").stdout.split()[4:6]) <= {b"0", b"1"}
    assert not sh(cell, "ulimit -c unlimited").ok
    assert sh(cell, "kill -SEGV $$").ended is Ended.SIGNALLED


# network


def test_nothing_outside_is_reached(cell):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as hidden:
        hidden.bind(f"\0canary-{os.getpid()}")
        hidden.listen()
        port = server.getsockname()[1]
        text = f"""
import socket
def attempt(family, kind, to):
    s = socket.socket(family, kind); s.settimeout(1)
    try: s.connect(to); s.send(b"x"); print("through", to)
    except OSError as e: print(e.errno)
attempt(2, 1, ("127.0.0.1", {port}))
attempt(2, 1, ("1.1.1.1", 53))
attempt(2, 2, ("8.8.8.8", 53))
attempt(10, 2, ("2001:4860:4860::8888", 53))
attempt(1, 1, "\\0canary-{os.getpid()}")
try: socket.getaddrinfo("example.org", 80)
except OSError: print("no name")
try: socket.socket(2, 3, 1)
except OSError: print("no raw")
"""
        seen = py(cell, text, timeout_s=15).stdout.decode()
    assert "through" not in seen
    assert seen.split("\n")[-3:] == ["no name", "no raw", ""]


# what is taken out


def test_links_fifos_and_ways_up_are_not_followed(cell, tmp_path):
    (tmp_path / "secret").write_text("secret")
    sh(cell, f"mkdir /out; ln -s /etc/shadow /out/a; ln -s {tmp_path} /out/b; mkfifo /out/c; ln -s ../../../../etc /out/d; mkdir /out/e")
    for path in ("/out/a", "/out/b/secret", "/out/c", "/out/d/shadow", "/out/e", "/out/a/b"):
        assert cell.read(path, 1000) is None
    for path in ("/out/b/new", "/out/d/new", "/out/e", "/out/c/x"):
        with pytest.raises(Refused):
            cell.write(path, b"x")
    cell.write("/out/a", b"mine")
    cell.write("/out/c", b"mine")
    assert sh(cell, "cat /out/a /out/c").stdout == b"minemine"
    assert not (tmp_path / "new").exists()


def test_a_file_put_over_another_name_of_a_file_changes_that_name_alone(cell):
    sh(cell, "echo one > /tmp/a; ln /tmp/a /tmp/b")
    cell.write("/tmp/b", b"two")
    assert sh(cell, "cat /tmp/a /tmp/b").stdout == b"one\ntwo"


def test_a_race_of_links_leads_nowhere(boxes):
    with boxes.create(session=True, limits=SMALL) as session:
        sh(session, "mkdir -p /r/real; echo mine > /r/real/shadow; ln -s /etc /r/link")
        swap = "import ctypes\nc = ctypes.CDLL(None)\nwhile True: c.renameat2(-100, b'/r/real', -100, b'/r/link', 2)"
        session.run(["/bin/sh", "-c", f'setsid python3 -c "{swap}" >/dev/null 2>&1 &'])
        seen = set()
        for _ in range(300):
            try:
                seen.add(session.read("/r/real/shadow", 100_000))
            except Refused:
                seen.add(None)
        assert seen <= {b"mine\n", None}
        assert session.snapshot().path.is_dir()


@pytest.mark.parametrize(("depth", "ends"), [(200, "kept"), (600, "refused")])
def test_folders_in_folders_are_kept_or_refused_cleanly(boxes, depth, ends):
    text = f"import os\nos.chdir('/tmp')\nfor _ in range({depth}): os.mkdir('d' * 200); os.chdir('d' * 200)\nopen('end', 'w').close()"
    with boxes.create() as box:
        assert py(box, text).ok
        if ends == "refused":
            with pytest.raises(Refused, match="deep"):
                box.snapshot()
            with pytest.raises(Refused, match="deep"):
                box.diff()
            return
        assert len(box.diff().changes) == depth + 1
        layer = box.snapshot()
    with boxes.create([layer]) as box:
        assert sh(box, "find /tmp -name end | wc -l").stdout == b"1\n"
        assert py(box, text.replace("os.mkdir('d' * 200);", "").replace("'w'", "'a'")).ok
        assert len(box.diff().changes) == 1


def test_names_are_bytes_and_may_be_huge(cell):
    text = "import os\nfor n in (b'n' * 255, b'\\xff\\xfe', b'new\\nline', b'-rf', b' '): open(b'/tmp/' + n, 'w').write('x')"
    assert py(cell, text).ok
    assert {os.fsencode(path) for path in cell.diff().changes} == {b"/tmp/" + name for name in (b"n" * 255, b"\xff\xfe", b"new\nline", b"-rf", b" ")}
    assert sorted(os.listdir(os.fsencode(cell.snapshot().path) + b"/tmp")) == sorted((b"n" * 255, b"\xff\xfe", b"new\nline", b"-rf", b" "))
    with pytest.raises(Refused):
        cell.read("/tmp/" + "n" * 5000, 10)
    with pytest.raises(Refused):
        cell.write("/tmp/" + "n" * 5000, b"")


def test_a_whiteout_cannot_be_planted(boxes):
    """Neither as a device nor as an attribute: a box could hide what a later one must see."""
    names = [f"user.overlay.{name}" for name in ("opaque", "whiteout", "redirect", "metacopy")] + ["trusted.overlay.opaque"]
    text = f"import os\nfor n in {names}:\n try: os.setxattr('/etc', n, b'y')\n except OSError: pass\n"
    text += "try: os.mknod('/etc/hosts2', 0o20000, 0); print('planted')\nexcept OSError: pass"
    with boxes.create(limits=SMALL) as box:
        assert py(box, text).stdout == b""
        assert all(change is Changed.WRITTEN for change in box.diff().changes.values())
        layer = box.snapshot()
    with boxes.create([layer]) as box:
        assert sh(box, "cat /etc/hosts").ok


def test_a_program_that_becomes_another_user_does_so_nowhere(cell):
    sh(cell, "cp /bin/sh /tmp/sh; chmod 6755 /tmp/sh")
    assert sh(cell, "/tmp/sh -p -c 'id -u'").stdout == b"0\n"
    layer = cell.snapshot()
    kept = (layer.path / "tmp" / "sh").stat()
    assert kept.st_uid == 200_000
    assert layer.path.parent.stat().st_mode & 0o077 == 0o011


def test_many_names_of_one_file_are_one_file_in_a_layer(cell):
    assert sh(cell, "head -c 10000000 /dev/zero > /tmp/a; for i in $(seq 300); do ln /tmp/a /tmp/a$i; done").ok
    layer = cell.snapshot()
    assert (layer.path / "tmp" / "a").stat().st_nlink == 301


def test_a_layer_does_not_change_by_what_stands_on_it(boxes):
    with boxes.create() as box:
        sh(box, "echo one > /a; ln /a /b")
        layer = box.snapshot()
    with boxes.create([layer]) as box:
        sh(box, "echo two >> /a; echo three > /b; chmod 777 /a")
    assert (layer.path / "a").read_bytes() == b"one\n"


def test_what_a_command_says_of_bwrap_is_no_broken_box(cell):
    forged = sh(cell, 'echo "bwrap: Can\'t mount proc on /newroot/proc: Operation not permitted" >&2; exit 1')
    assert (forged.ended, forged.exit_code) == (Ended.EXITED, 1)


def test_two_boxes_do_not_see_each_other(boxes):
    with boxes.create(session=True, limits=SMALL) as one, boxes.create(limits=SMALL) as two:
        sh(one, "echo secret > /tmp/a; sleep 100 &")
        assert not sh(two, f"cat {one.disk}/u/tmp/a || cat /tmp/a || ls {stage.PLACE}").ok
        assert b"sleep" not in sh(two, "cat /proc/[0-9]*/comm").stdout


def test_a_user_of_the_machine_sees_no_layer_and_no_disk(cell):
    seen = subprocess.run(["ls", stage.PLACE, cell.disk.parent, cell.disk], user=65534, group=65534, extra_groups=[], capture_output=True)
    assert seen.stdout == b""


def test_a_killed_supervisor_takes_its_box_with_it(boxes, tmp_path):
    script = (
        "import sys\nfrom pathlib import Path\nfrom inspector.sandbox.opening import open_backend\nb = open_backend(Path(sys.argv[1])).create()\n"
        "print(*b.group.entrances(), flush=True)\nb.run(['/bin/sh', '-c', 'setsid sleep 300 & sleep 300'], timeout_s=300)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        entrances = [Path(word) for word in process.stdout.readline().split()]
        deadline = time.monotonic() + 20
        while not all(len(path.read_text().split()) >= 4 for path in entrances) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
    while any(path.read_text() for path in entrances) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(path.read_text() for path in entrances)

#!/bin/sh
# What `gristmill scale` says of programs that nobody here wrote: bench/scale-programs.sh GRISTMILL [OPTION...] >programs.md
#
# OPTIONs are those of `gristmill scale`. PYTHON names an interpreter with NumPy. ONLY="xz sleep" tries only these programs, and
# REPORTS=FOLDER keeps the whole reports. A program that is not installed is left out. No pattern judges the verdicts: read them.
set -eu
if [ $# -lt 1 ]; then
    echo "usage: $0 GRISTMILL [OPTION...]" >&2
    exit 2
fi
gristmill=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- --workers 1,2
options=$*
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM HUP
cd "$folder"

# try NAME NEEDED OPTION... -- COMMAND...: prints a row, if the program NEEDED is installed.
try() {
    name=$1
    needed=$2
    shift 2
    case " ${ONLY:-$name} " in *" $name "*) ;; *) return 0 ;; esac
    command -v "$needed" >/dev/null || { echo "$needed is not installed" >&2; return 0; }
    echo "$name" >&2
    # shellcheck disable=SC2086
    "$gristmill" scale --timeout 60s $options "$@" >report 2>errors || true
    [ -z "${REPORTS:-}" ] || cat report errors >"$REPORTS/$name.txt"
    verdict=$(tail -n 1 report)
    [ -n "$verdict" ] || verdict=$(tail -n 1 errors)
    times=$(awk '$1 ~ /^[0-9]+\*?$/ && / %/ { printf "%s%s %s", sep, $2, $3; sep = ", " }' report)
    echo "| $name | $times | $verdict |"
}

"$python" - <<'PYTHON'
import random

random.seed(1)
words = ["%x" % random.getrandbits(random.choice((8, 12, 40))) for _ in range(50_000)]
with open("words.txt", "w") as out:
    for _ in range(900_000):
        out.write(random.choice(words) + " " + random.choice(words) + "\n")
with open("words.txt", "rb") as whole, open("some.txt", "wb") as out:
    out.write(whole.read(3_000_000))
for number in range(24):
    with open("part%d.c" % number, "w") as out:
        for function in range(150):
            out.write("int f%d_%d(int x) { int s = 0; for (int i = 0; i < x; i++) s += (x * %d) ^ i; return s; }\n" % (number, function, function))
with open("Makefile", "w") as out:
    out.write("OBJECTS := $(patsubst %d.c,%d.o,$(wildcard *.c))\nall: $(OBJECTS)\n%%.o: %%.c\n\t$(CC) -O2 -c $< -o $@\n".replace("%d.", "%.").replace("%%", "%"))
PYTHON

cat >product.py <<'PYTHON'
import numpy

a = numpy.ones((1500, 1500))
for _ in range(4):
    a = a @ a
    a /= a.max()
PYTHON

cat >pool.py <<'PYTHON'
import multiprocessing, sys

def count(turns):
    while turns:
        turns -= 1

if __name__ == "__main__":
    with multiprocessing.Pool(int(sys.argv[1])) as pool:
        pool.map(count, [500_000] * 40, chunksize=1)
PYTHON

# The parent makes the tasks, which takes as long as the work.
cat >feed.py <<'PYTHON'
import multiprocessing, sys

def length(words):
    return len(set(words))

def tasks():
    for number in range(150):
        yield ["word%d" % (number * at % 9973) for at in range(20_000)]

if __name__ == "__main__":
    with multiprocessing.Pool(int(sys.argv[1])) as pool:
        sum(pool.imap(length, tasks()))
PYTHON

# Each worker sends to a server with one thread, and waits for its answer.
cat >socket.sh <<'SHELL'
exec "$1" - "$2" <<'PYTHON'
import os, socket, sys, threading

def answer(server):
    connections = [server.accept()[0] for _ in range(workers)]
    threads = [threading.Thread(target=serve, args=(connection,)) for connection in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

def serve(connection):
    while connection.recv(1):
        with lock:
            x = 0
            for at in range(400):
                x += at
        connection.send(b"x")

workers, lock = int(sys.argv[1]), threading.Lock()
server = socket.create_server(("127.0.0.1", 0))
port = server.getsockname()[1]
children = []
for _ in range(workers):
    child = os.fork()
    if child == 0:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            for _ in range(20_000 // workers):
                connection.send(b"x")
                connection.recv(1)
        os._exit(0)
    children.append(child)
answer(server)
for child in children:
    os.waitpid(child, 0)
PYTHON
SHELL

# Workers that look every millisecond whether another has finished its step.
cat >poll.py <<'PYTHON'
import multiprocessing, sys, time

def work(me, workers, turn):
    for _ in range(400 // workers):
        while turn.value != me:
            time.sleep(0.001)
        x = 0
        for at in range(20_000):
            x += at
        turn.value = (me + 1) % workers

if __name__ == "__main__":
    workers, turn = int(sys.argv[1]), multiprocessing.Value("i", 0)
    all = [multiprocessing.Process(target=work, args=(me, workers, turn)) for me in range(workers)]
    for one in all:
        one.start()
    for one in all:
        one.join()
PYTHON

# The first worker has three quarters of the work.
cat >uneven.py <<'PYTHON'
import multiprocessing, sys

def count(turns):
    while turns:
        turns -= 1

if __name__ == "__main__":
    workers = int(sys.argv[1])
    parts = [20_000_000] if workers == 1 else [15_000_000] + [5_000_000 // (workers - 1)] * (workers - 1)
    all = [multiprocessing.Process(target=count, args=(part,)) for part in parts]
    for one in all:
        one.start()
    for one in all:
        one.join()
PYTHON

cat >Garbage.java <<'JAVA'
public class Garbage {
    static volatile Object sink;

    public static void main(String[] arguments) throws InterruptedException {
        int workers = Integer.parseInt(arguments[0]);
        Thread[] all = new Thread[workers];
        for (int i = 0; i < workers; i++) {
            all[i] = new Thread(() -> {
                Object[] kept = new Object[20_000];
                for (int at = 0; at < 60_000_000 / workers; at++) {
                    Object piece = new int[8];
                    kept[at % kept.length] = piece;
                }
                sink = kept;
            });
            all[i].start();
        }
        for (Thread one : all) one.join();
    }
}
JAVA

cat >channel.go <<'GO'
package main

import (
	"os"
	"strconv"
	"sync"
)

func main() {
	workers, _ := strconv.Atoi(os.Args[1])
	tasks := make(chan int)
	var all sync.WaitGroup
	for i := 0; i < workers; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			x := 0
			for task := range tasks {
				for at := 0; at < 100; at++ {
					x += at * task
				}
			}
			_ = x
		}()
	}
	for task := 0; task < 4000000; task++ {
		tasks <- task
	}
	close(tasks)
	all.Wait()
}
GO

echo '| program | times | what it said |'
echo '|---|---|---|'
try sort sort -- sort --parallel='{workers}' -S 200M -o /dev/null words.txt
try xz xz -- xz -1 -T'{workers}' --block-size=1MiB -c words.txt
try xz-one-block xz -- xz -1 -T'{workers}' -c some.txt
try zstd zstd -- zstd -q -9 -T'{workers}' -c words.txt
try pigz pigz -- pigz -p '{workers}' -c words.txt
try make make --prepare 'rm -f *.o' -- make -s -j'{workers}'
try numpy "$python" -- env OPENBLAS_NUM_THREADS='{workers}' OMP_NUM_THREADS='{workers}' "$python" product.py
try python-pool "$python" -- "$python" pool.py '{workers}'
try python-feed "$python" -- "$python" feed.py '{workers}'
try pipeline xz -- sh -c 'gzip -6 -c words.txt | xz -1 -T{workers} --block-size=1MiB -c'
try loopback "$python" -- sh socket.sh "$python" '{workers}'
try polling "$python" -- "$python" poll.py '{workers}'
try uneven "$python" -- "$python" uneven.py '{workers}'
try ignores sh -- sh -c ': {workers}; i=0; while [ $i -lt 400000 ]; do i=$((i + 1)); done'
try sleep sh -- sh -c ': {workers}; sleep 0.7'
try short true -- true '{workers}'
if command -v javac >/dev/null; then
    javac Garbage.java
    try java-serial-gc java -- java -Xmx64m -Xmn16m -XX:+UseSerialGC Garbage '{workers}'
    try java-parallel-gc java -- java -Xmx64m -Xmn16m -XX:+UseParallelGC -XX:ParallelGCThreads='{workers}' Garbage '{workers}'
fi
if command -v go >/dev/null; then
    GOFLAGS=-mod=mod GO111MODULE=off GOCACHE="$folder/go" go build -o channel channel.go
    try go-channel ./channel -- env GOMAXPROCS='{workers}' ./channel '{workers}'
fi

#!/bin/sh
# Runs `gristmill scale` on programs that nobody here wrote: bench/scale-programs.sh GRISTMILL [OPTION...] >programs.md
#
# OPTIONs are those of `gristmill scale`. PYTHON names an interpreter with NumPy and pytest-xdist. ONLY="xz sleep"
# tries only these programs, MORE=1 those of the second list, too, and REPORTS=FOLDER keeps the whole reports. A
# program that is not installed is left out. Each row has the limit that is known of the program, written down before
# its first run. No pattern judges the verdicts: read them.
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

# try NAME NEEDED LIMIT OPTION... -- COMMAND...: prints a row, if the program NEEDED is installed.
try() {
    name=$1
    needed=$2
    limit=$3
    shift 3
    case " ${ONLY:-$name} " in *" $name "*) ;; *) return 0 ;; esac
    command -v "$needed" >/dev/null || { echo "$needed is not installed" >&2; return 0; }
    echo "$name" >&2
    began=$(date +%s)
    # shellcheck disable=SC2086
    "$gristmill" scale --timeout 60s $options "$@" >report 2>errors || true
    [ -z "${REPORTS:-}" ] || cat report errors >"$REPORTS/$name.txt"
    verdict=$(tail -n 1 report)
    [ -n "$verdict" ] || verdict=$(tail -n 1 errors)
    times=$(awk '$1 ~ /^[0-9]+\*?$/ && / %/ { printf "%s%s %s", sep, $2, $3; sep = ", " }' report)
    echo "| $name | $limit | $times | $verdict | $(($(date +%s) - began)) s |"
}

# more NAME NEEDED OPTION... -- COMMAND...: the same for the second list, whose limits nobody wrote down beforehand.
more() {
    name=$1
    needed=$2
    shift 2
    case " ${ONLY:-} " in *" $name "*) ;; *) [ -n "${MORE:-}" ] || return 0 ;; esac
    try "$name" "$needed" '' "$@"
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

# Writers of one database, each with transactions of its own, which wait up to 20 s for the lock.
cat >writers.sh <<'SHELL'
rm -f data.db data.db-journal
sqlite3 data.db 'CREATE TABLE t (x INTEGER, y TEXT);'
for writer in $(seq "$1"); do
    {
        echo '.timeout 20000'
        for row in $(seq $((300 / $1))); do
            echo "INSERT INTO t VALUES ($row, 'writer $writer');"
        done
    } | sqlite3 data.db &
done
wait
SHELL

# Each worker of pytest-xdist starts an interpreter and collects all tests.
mkdir tests
cat >tests/test_many.py <<'PYTHON'
import pytest

@pytest.mark.parametrize("number", range(400))
def test_counts(number):
    turns = 60_000
    while turns:
        turns -= 1
PYTHON

# The server has one thread, and answers each request of a client before its next one.
cat >clients.sh <<'SHELL'
redis-server --port 0 --unixsocket "$PWD/redis" --save '' --appendonly no --daemonize no >/dev/null &
server=$!
until [ -S redis ] && redis-cli -s redis ping >/dev/null 2>&1; do sleep 0.01; done
redis-benchmark -s redis -c "$1" -n 60000 -t set -q >/dev/null
kill $server
wait
rm -f redis
SHELL

cat >threads.py <<'PYTHON'
import sys, threading

def count(turns):
    while turns:
        turns -= 1

workers = int(sys.argv[1])
all = [threading.Thread(target=count, args=(24_000_000 // workers,)) for _ in range(workers)]
for one in all:
    one.start()
for one in all:
    one.join()
PYTHON

# Sums of arrays far larger than any cache; NumPy lets other threads run meanwhile.
cat >add.py <<'PYTHON'
import sys, threading
import numpy

workers, size = int(sys.argv[1]), 24_000_000
a, b, c = (numpy.ones(size) for _ in range(3))

def add(worker):
    part = slice(size * worker // workers, size * (worker + 1) // workers)
    for _ in range(16):
        numpy.add(a[part], b[part], out=c[part])

all = [threading.Thread(target=add, args=(worker,)) for worker in range(workers)]
for one in all:
    one.start()
for one in all:
    one.join()
PYTHON

cat >mutex.go <<'GO'
package main

import (
	"os"
	"strconv"
	"sync"
)

func main() {
	workers, _ := strconv.Atoi(os.Args[1])
	counts := map[int]int{}
	var lock sync.Mutex
	var all sync.WaitGroup
	for i := 0; i < workers; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for at := 0; at < 16000000/workers; at++ {
				lock.Lock()
				counts[at%1000]++
				lock.Unlock()
			}
		}()
	}
	all.Wait()
}
GO

# Each thread counts in a word of its own; all words lie in one cache line.
cat >lines.c <<'C'
#include <pthread.h>
#include <stdlib.h>

static volatile long counts[8] __attribute__((aligned(64)));
static long turns;

static void *count(void *own) {
    for (long at = 0; at < turns; at++) ++*(volatile long *)own;
    return NULL;
}

int main(int number, char **words) {
    int workers = number > 1 ? atoi(words[1]) : 1;
    pthread_t all[8];
    turns = 400000000 / workers;
    for (int at = 0; at < workers; at++) pthread_create(&all[at], NULL, count, (void *)&counts[at % 8]);
    for (int at = 0; at < workers; at++) pthread_join(all[at], NULL);
}
C

# Each worker asks for memory, touches it, and gives it back, as the readers of thread bottlenecks (Chen 2020) map
# files: in threads, which share an address space and its lock, or in processes.
cat >maps.c <<'C'
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static long turns;

static void *map(void *unused) {
    for (long at = 0; at < turns; at++) {
        char *memory = mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(memory, 1 << 18, MADV_NOHUGEPAGE);
        for (long page = 0; page < 1 << 18; page += 4096) memory[page] = 1;
        munmap(memory, 1 << 18);
    }
    return unused;
}

int main(int number, char **words) {
    int workers = number > 2 ? atoi(words[2]) : 1;
    int threads = number > 1 && strcmp(words[1], "threads") == 0;
    pthread_t all[64];
    turns = 24000 / workers;
    for (int at = 0; at < workers; at++) {
        if (threads) {
            pthread_create(&all[at], NULL, map, NULL);
        } else if (fork() == 0) {
            map(NULL);
            _exit(0);
        }
    }
    for (int at = 0; at < workers; at++) {
        if (threads) pthread_join(all[at], NULL);
        else wait(NULL);
    }
}
C

# Forty packages that do not need each other. The packages of Go itself are compiled beforehand.
mkdir -p build
for number in $(seq 40); do
    mkdir "build/p$number"
    {
        echo "package p$number"
        for function in $(seq 150); do
            echo "func F$function(x int) int { s := 0; for i := 0; i < x; i++ { s += (x * $number) ^ i; if s > $function { s -= i } }; return s }"
        done
    } >"build/p$number/p.go"
done
{
    echo 'package main'
    for number in $(seq 40); do echo "import \"many/p$number\""; done
    echo 'func main() {'
    for number in $(seq 40); do echo "p$number.F1(1)"; done
    echo '}'
} >build/main.go
printf 'module many\n\ngo 1.20\n' >build/go.mod
printf 'package main\n\nfunc main() {}\n' >empty.go

# The programs, and their limits with two workers on two processors.
echo '| program | limit known beforehand | times | what it said | took |'
echo '|---|---|---|---|---|'
try pigz pigz 'none: blocks are compressed apart' -- pigz -p '{workers}' -c words.txt
try xz xz 'none, or memory and caches: each block has a search tree much larger than a cache' -- xz -1 -T'{workers}' --block-size=1MiB -c words.txt
try xz-one-block xz 'parts: there is only one block, so the second worker has nothing to do' -- xz -1 -T'{workers}' -c some.txt
try zstd zstd 'parts: a job of level 9 takes 16 MiB, so the file is one job' -- zstd -q -9 -T'{workers}' -c words.txt
try sqlite sqlite3 "the database's lock: one writer at a time; and the disk, as each transaction is synced" -- sh writers.sh '{workers}'
try make make 'none: 24 equal files' --prepare 'rm -f *.o' -- make -s -j'{workers}'
try pytest-xdist "$python" 'work that grows with the workers: each imports pytest and collects all tests; and the serial start before that' -- "$python" -m pytest -q -p no:cacheprovider -n '{workers}' tests
if command -v go >/dev/null; then
    GO111MODULE=off GOCACHE="$folder/warm" go build -o empty empty.go
    try go-build go 'the compiler uses several threads already with -p 1; the link at the end is serial' --prepare 'rm -rf cold && cp -r warm cold' -- \
        env -C build GOCACHE="$folder/cold" GOFLAGS=-mod=mod go build -p '{workers}' -o "$folder/many" .
    GO111MODULE=off GOCACHE="$folder/warm" go build -o mutex mutex.go
    try go-mutex ./mutex 'a lock: the goroutines do nothing without it' -- env GOMAXPROCS='{workers}' ./mutex '{workers}'
fi
try redis redis-benchmark 'the server has one thread; clients wait for its answers at sockets' -- sh clients.sh '{workers}'
try imagemagick "${CONVERT:-/usr/bin/convert}" 'serial stretches: OpenMP loops over rows, and one thread between them' -- \
    env MAGICK_THREAD_LIMIT='{workers}' "${CONVERT:-/usr/bin/convert}" -size 1600x1200 gradient: -blur 0x12 null:
try python-threads "$python" "the interpreter's lock" -- "$python" threads.py '{workers}'
try numpy-product "$python" 'none, or caches: the product of matrices reads each block often' -- env OPENBLAS_NUM_THREADS='{workers}' OMP_NUM_THREADS='{workers}' "$python" product.py
try numpy-add "$python" 'memory bandwidth: three arrays of 192 MB, one addition for 24 bytes; and their first touch, which is serial' -- "$python" add.py '{workers}'
cc -O1 -pthread -o lines lines.c
cc -O1 -pthread -o maps maps.c
try false-sharing ./lines 'false sharing' -- ./lines '{workers}'
try mmap-threads ./maps 'page faults and changes of one address space: its lock, and interrupts of the other processor' -- ./maps threads '{workers}'
try mmap-processes ./maps 'none, or page faults of the kernel: no address space is shared' -- ./maps processes '{workers}'

more sort sort -- sort --parallel='{workers}' -S 200M -o /dev/null words.txt
more python-pool "$python" -- "$python" pool.py '{workers}'
more python-feed "$python" -- "$python" feed.py '{workers}'
more pipeline xz -- sh -c 'gzip -6 -c words.txt | xz -1 -T{workers} --block-size=1MiB -c'
more loopback "$python" -- sh socket.sh "$python" '{workers}'
more polling "$python" -- "$python" poll.py '{workers}'
more uneven "$python" -- "$python" uneven.py '{workers}'
# shellcheck disable=SC2016  # `sh` expands it
more ignores sh -- sh -c ': {workers}; i=0; while [ $i -lt 400000 ]; do i=$((i + 1)); done'
more sleep sh -- sh -c ': {workers}; sleep 0.7'
more short true -- true '{workers}'
if command -v javac >/dev/null; then
    javac Garbage.java
    more java-serial-gc java -- java -Xmx64m -Xmn16m -XX:+UseSerialGC Garbage '{workers}'
    more java-parallel-gc java -- java -Xmx64m -Xmn16m -XX:+UseParallelGC -XX:ParallelGCThreads='{workers}' Garbage '{workers}'
fi
if command -v go >/dev/null; then
    GOFLAGS=-mod=mod GO111MODULE=off GOCACHE="$folder/go" go build -o channel channel.go
    more go-channel ./channel -- env GOMAXPROCS='{workers}' ./channel '{workers}'
fi

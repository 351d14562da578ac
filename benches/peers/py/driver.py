#!/usr/bin/env python3
"""Runs the workloads of ../SPEC.md on Python's lock libraries: redis-py and kazoo. One thread per task."""
import argparse
import importlib.metadata
import json
import logging
import sys
import threading
import time

import kazoo.client
import redis

logging.getLogger("kazoo").setLevel(logging.CRITICAL)


class RedisPy:
    """redis.lock.Lock: SET NX PX, fixed 100 ms between attempts, no renewal."""

    package = "redis"
    extend_by_hand = True

    def __init__(self, options):
        host, port = options.server.rsplit(":", 1)
        self.client, self.ttl = redis.Redis(host=host, port=int(port)), options.ttl

    def task(self, key):
        return self.client.lock(key, timeout=self.ttl)

    def close(self):
        self.client.close()


class Kazoo:
    package = "kazoo"
    extend_by_hand = False

    def __init__(self, options):
        self.client = kazoo.client.KazooClient(options.server, timeout=options.ttl)
        self.client.start()

    def task(self, key):
        return self.client.Lock(f"/bench/{key}")

    def close(self):
        self.client.stop()
        self.client.close()


PEERS = {"redis-py": RedisPy, "kazoo": Kazoo}


class Witness:
    """What the lock protects: the count is read and written in two steps, inside tells who breaks the rule."""

    def __init__(self):
        self.inside, self.count, self.violations = [], 0, 0

    def visit(self):
        self.inside.append(None)  # list.append and pop are atomic under the interpreter's lock
        if len(self.inside) != 1:
            self.violations += 1
        self.count += 1
        self.inside.pop()


class Task:
    def __init__(self, lock):
        self.lock, self.visits, self.errors, self.longest, self.latencies = lock, 0, 0, 0.0, []

    def run(self, options, witness, begin, end):
        while (start := time.perf_counter()) < end:
            try:
                took = self.operation(options.workload, witness)
            except Exception as error:
                self.errors += 1
                if self.errors == 1:
                    print(options.peer, repr(error), file=sys.stderr)
                time.sleep(0.001)
                continue
            if start + took > begin:
                self.longest = max(self.longest, took)
                if start + took < end:
                    self.latencies.append(took)

    def operation(self, workload, witness):
        """Does one operation and returns the latency that the workload asks for."""
        start = time.perf_counter()
        if workload == "tryheld":
            if self.lock.acquire(blocking=False):
                raise RuntimeError("try-lock got a lock that is held")
            return time.perf_counter() - start
        if not self.lock.acquire():
            raise RuntimeError("not acquired")
        took = time.perf_counter() - start
        if workload == "contend":
            witness.visit()
            self.visits += 1
        self.lock.release()
        return took if workload == "contend" else time.perf_counter() - start


def measure(options, peer):
    clients = [peer(options) for _ in range(options.clients)]
    tasks = []
    for client in clients:
        for _ in range(options.tasks):
            tasks.append(Task(client.task(f"{options.key}-{len(tasks)}" if options.workload == "distinct" else options.key)))
    if options.workload == "tryheld":
        clients.append(peer(options))
        held = clients[-1].task(options.key)
        held.acquire()

    witness = Witness()
    begin = time.perf_counter() + 1
    end = begin + options.seconds
    threads = [threading.Thread(target=task.run, args=(options, witness, begin, end)) for task in tasks]
    for thread in threads:
        thread.start()
    for moment, name in ((begin, "begin"), (end, "end")):
        time.sleep(max(0, moment - time.perf_counter()))
        print(f"measure: {name}", file=sys.stderr, flush=True)
    for thread in threads:
        thread.join()
    if options.workload == "tryheld":
        held.release()
    for client in clients:
        client.close()
    return report(options, peer, witness, tasks)


def report(options, peer, witness, tasks):
    counts = [len(task.latencies) for task in tasks]
    ops, squares = sum(counts), sum(n * n for n in counts)
    latencies = sorted(took for task in tasks for took in task.latencies)

    def at(q):
        return round(latencies[min(int(q * ops), ops - 1)] * 1e6, 1) if ops else 0

    lost = sum(task.visits for task in tasks) - witness.count  # increments that overwrote each other
    return {
        "peer": options.peer, "version": importlib.metadata.version(peer.package), "workload": options.workload,
        "clients": options.clients, "tasks": options.tasks, "seconds": options.seconds,
        "ops": ops, "ops_s": round(ops / options.seconds, 1),
        "mean_us": round(sum(latencies) / max(ops, 1) * 1e6, 1), "p50_us": at(.50), "p95_us": at(.95), "p99_us": at(.99), "max_us": round(max(t.longest for t in tasks) * 1e6, 1),
        "violations": max(witness.violations, lost), "errors": sum(task.errors for task in tasks),
        "jain": round(ops * ops / (squares * len(counts)), 4) if squares else 0,
    }


def hold(options, peer):
    """Takes the lock, says so, and keeps it until the process is killed."""
    lock = peer(options).task(options.key)
    lock.acquire()
    print("held", flush=True)
    while True:
        time.sleep(options.ttl / 3)
        if peer.extend_by_hand:
            lock.reacquire()


def wait(options, peer):
    """Queues the tasks as waiters on one client and prints when each of them got in."""
    client = peer(options)

    def waiter():
        lock = client.task(options.key)
        lock.acquire()
        print(time.time_ns(), flush=True)
        lock.release()

    threads = [threading.Thread(target=waiter) for _ in range(options.tasks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", required=True, choices=PEERS)
    parser.add_argument("--server", required=True)
    parser.add_argument("--workload", default="pair", choices=("pair", "contend", "tryheld", "distinct", "hold", "wait"))
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--tasks", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--key", default="bench")
    parser.add_argument("--ttl", type=int, default=10)
    options = parser.parse_args()
    peer = PEERS[options.peer]
    if options.workload in ("hold", "wait"):
        {"hold": hold, "wait": wait}[options.workload](options, peer)
    else:
        print(json.dumps(measure(options, peer)))


if __name__ == "__main__":
    main()

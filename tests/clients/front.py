"""The real Envoy with the shipped configuration, started by the rig."""

import json
import os
import subprocess
import urllib.request

RIG = os.environ["SLUICE_RIG"]


class Front:
    """One Envoy under one policy before a model server; it ends with the block."""

    def __init__(self, model, policy=None, header_hold=True):
        self.command = [RIG, "front", "--upstream", model.address]
        if policy is not None:
            self.command += ["--policy", json.dumps(policy)]
        if not header_hold:
            self.command += ["--no-header-hold"]

    def __enter__(self):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"no Envoy: {self.command} ended with {self.process.wait()}")
        addresses = json.loads(line)
        self.clients, self.admin = addresses["clients"], addresses["admin"]
        self.url = f"http://{self.clients}"
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()

    def outcomes(self, reason):
        """How many requests have come to this outcome so far, over all classes."""
        stats = self.stats("sluice.requests_total")
        return sum(value for name, value in stats.items() if name.endswith(f".outcome.{reason}"))

    def received(self):
        """How many bytes Envoy has read from clients."""
        return self.stats("http.clients.downstream_cx_rx_bytes_total").popitem()[1]

    def stats(self, part):
        """Counters and gauges with this in their names."""
        with urllib.request.urlopen(f"http://{self.admin}/stats?filter={part}", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return {name: int(value) for name, value in (line.split(": ") for line in lines)}

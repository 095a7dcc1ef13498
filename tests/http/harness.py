# SPDX-License-Identifier: Apache-2.0
"""A started server as the tests see it. BUILD_DIR names another build than build/."""
import http.client
import json
import os
import pathlib
import re
import signal
import signal
import socket
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get('BUILD_DIR', ROOT / 'build')).resolve()
PATIENCE = 60  # seconds until something that must happen counts as missing


def unpack(family, folder):
    """A family of the goldens as a model directory."""
    subprocess.run([BUILD / 'tests/check/golden_unpack',
                    ROOT / 'tests/golden/families' / family, folder], check=True)


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f'never happened: {what}'
        time.sleep(0.01)


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def events(self):
        """The objects of a stream, which must end with [DONE]."""
        lines = [l for l in self.body.decode().split('\n\n') if l]
        assert all(l.startswith('data: ') for l in lines)
        assert lines[-1] == 'data: [DONE]'
        return [json.loads(l[6:]) for l in lines[:-1]]


class Server:
    """A started server; its port is known, its model perhaps not loaded."""

    def __init__(self, *command):
        self.lines = []
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()
        wait_until(lambda: self.port or self.process.poll() is not None, 'a listening server')

    def _listen(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip('\n'))

    @property
    def port(self):
        for line in self.lines:
            if m := re.search(r'listening on http://.*:(\d+)$', line):
                return int(m[1])
        return None

    @property
    def url(self):
        return f'http://127.0.0.1:{self.port}'

    @property
    def threads(self):
        return len(os.listdir(f'/proc/{self.process.pid}/task'))

    @property
    def resident(self):
        status = pathlib.Path(f'/proc/{self.process.pid}/status').read_text()
        return int(re.search(r'VmRSS:\s*(\d+) kB', status)[1]) * 1024

    def wait_ready(self):
        wait_until(lambda: self.ask('GET', '/health').status == 200, 'a loaded model')
        return self

    def connect(self, **options):
        return socket.create_connection(('127.0.0.1', self.port), PATIENCE, **options)

    def ask(self, method, path, body=None, headers={}):
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=PATIENCE)
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        connection.request(method, path, body, headers)
        reply = connection.getresponse()
        out = Reply(reply.status, reply.headers, reply.read())
        connection.close()
        return out

    def complete(self, prompt, **fields):
        return self.ask('POST', '/v1/completions', {'prompt': prompt, **fields})

    def chat(self, text, **fields):
        return self.ask('POST', '/v1/chat/completions',
                        {'messages': [{'role': 'user', 'content': text}], **fields})

    def stop(self, how=signal.SIGTERM):
        """Returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        status = self.process.wait(PATIENCE)
        self.listener.join(PATIENCE)
        return status

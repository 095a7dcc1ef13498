# SPDX-License-Identifier: Apache-2.0
"""Servers: `1bit serve` on a real model, and the same server over an engine that is none
(tests/server/fake_engine.c)."""
import pytest

from harness import BUILD, Server, unpack


@pytest.fixture(scope='session')
def llama(tmp_path_factory):
    """A miniature without a tokenizer, a directory."""
    folder = tmp_path_factory.mktemp('llama')
    unpack('llama', folder)
    return folder


@pytest.fixture
def start_fake():
    """Starts fakes by the name of their model; all must end well."""
    started = []

    def start(model='fake', host='127.0.0.1', port=0, keys='', origins=''):
        server = Server(BUILD / 'tests/server/fake_server', model, host, str(port), keys, origins)
        started.append(server)
        return server
    yield start
    for server in started:
        if server.process.poll() is None:
            assert server.stop() == 0, server.lines


@pytest.fixture(scope='module')
def fake():
    server = Server(BUILD / 'tests/server/fake_server', 'fake').wait_ready()
    yield server
    assert server.stop() == 0, server.lines


def start_real(*options):
    program = BUILD / 'src/cli/1bit'
    return Server(program, 'serve', '-m', 'qwen2.5-coder-0.5b', '-p', '0', *options).wait_ready()


@pytest.fixture(scope='module')
def real():
    """The default model (scripts/fetch-model brings it)."""
    server = start_real()
    yield server
    assert server.stop() == 0, server.lines


@pytest.fixture
def narrow():
    """The same with room for one answer at a time."""
    server = start_real('--parallel', '1', '--alias', 'narrow')
    yield server
    assert server.stop() == 0, server.lines

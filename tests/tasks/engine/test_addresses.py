"""Addresses of clusters that nobody listens at are refused at once, with the key to correct."""

import socket

import pytest

from parquetry.errors import SettingsError
from parquetry.tasks.engine.addresses import check_there
from parquetry.tasks.engine.remote import _RUNNERS


@pytest.mark.parametrize("address", ["tcp://", "tls://scheduler", "scheduler", "tcp://127.0.0.1:99999", "[", ""])
def test_what_is_no_address_of_dask_is_refused(address):
    """Its client would end with a traceback."""
    with pytest.raises(SettingsError, match=r"^run\.address .*: no Dask answers there: "):
        _RUNNERS["dask"](address, 1)


def test_address_without_a_cluster_is_refused_and_one_with_it_is_not():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(SettingsError, match=f"run.address '{address}': no Ray answers there: "):
            check_there(address, "Ray")
        server.listen()
        check_there(address, "Ray")
        check_there(f"ray://{address}", "Ray", 6379)

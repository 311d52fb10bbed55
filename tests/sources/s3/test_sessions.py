"""Clients of S3 share the descriptions of AWS's services, and parse times at once."""

import json

from aiobotocore.session import AioSession
from botocore.session import get_session

from parquetry.sources.base import Place
from parquetry.sources.s3.answers import time_of
from parquetry.sources.s3.sessions import adapt
from parquetry.sources.s3.source import open_s3


def loader_of(session):
    adapt(session)
    return session.get_component("data_loader")


def test_sessions_of_both_libraries_have_one_loader():
    loader = loader_of(get_session())
    assert loader_of(AioSession()) is loader
    assert loader.load_service_model("s3", "service-2") is loader.load_service_model("s3", "service-2")


def test_descriptions_of_the_folder_that_a_session_names_are_read(tmp_path):
    (tmp_path / "shop" / "2031-03-01").mkdir(parents=True)
    (tmp_path / "shop" / "2031-03-01" / "service-2.json").write_text(json.dumps({"metadata": {}}))
    session = get_session()
    session.set_config_variable("data_path", str(tmp_path))
    assert loader_of(session).load_service_model("shop", "service-2") == {"metadata": {}}
    assert "shop" not in loader_of(get_session()).list_available_services("service-2")


def test_a_source_lists_and_reads_with_them():
    source = open_s3(Place("docs", "s3://bucket", options={"anonymous": True, "region": "eu-central-1"}))
    shared = loader_of(get_session())
    assert source._client._loader is shared
    assert source._reader._files.session.get_component("data_loader") is shared


def test_clients_of_a_session_parse_times_quickly():
    session = get_session()
    adapt(session)
    parser = session.get_component("response_parser_factory").create_parser("rest-xml")
    assert parser._timestamp_parser is time_of

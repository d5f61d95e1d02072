"""Names of resources that hold parameters, of runs and of tasks, while a server runs."""

from collections.abc import Iterator
from typing import Any

import pytest
from served_home import FLOWS, Refused, Served, serving

MORE = """
from mirab import flow, task
from gate import hold as wait_at


@flow(resources={"api:{{ tenant }}": 1})
def sync(tenant: str | None, name: str) -> str:
    return wait_at(name)


@flow(resources={"api:{{ tenant }}": 1})
def sync_by_default(tenant: str | None = "acme") -> str | None:
    return tenant


@task(resources={"api:{{ order.tenant }}": 1})
def load(order: dict[str, object], name: str) -> str:
    return wait_at(name)


@flow
def loads(order: dict[str, object], name: str) -> str:
    return load(order, name)


@flow
def syncs(tenant: str, name: str) -> str:
    return sync(tenant, name)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serving('[resources]\n"api:*" = 1\n', {"flows.py": FLOWS, "more.py": MORE}) as server:
        yield server


def test_d16_runs_of_one_tenant_follow_each_other_and_of_two_go_at_once(served: Served) -> None:
    api, gates = served.api, served.gates
    first, second, other = (
        api.submit("sync", {"tenant": tenant, "name": name})["id"]
        for tenant, name in [("acme", "first"), ("acme", "second"), ("zeta", "other")]
    )
    gates.wait_for("first", "other")
    assert api.run(second)["state"] == "AwaitingResource"
    assert [api.resource(name)["used"] for name in ("api:acme", "api:zeta")] == [1, 1]
    assert [api.run(run)["needs"].get("api:acme") for run in (first, second, other)] == [1, 1, None]
    gates.let("first")
    gates.wait_for("second")
    gates.let("second", "other")
    assert api.completed(first, second, other) == ["first", "second", "other"]


@pytest.mark.parametrize(
    ("flow", "param"),
    [("loads", lambda tenant: {"order": {"tenant": tenant}}), ("syncs", lambda tenant: {"tenant": tenant})],
)
def test_d16_what_a_run_calls_takes_the_limit_of_its_own_arguments(served: Served, flow: str, param: Any) -> None:
    api, gates = served.api, served.gates
    first = api.submit(flow, {**param("acme"), "name": "first"})["id"]
    other = api.submit(flow, {**param("zeta"), "name": "other"})["id"]
    gates.wait_for("first", "other")
    second = api.submit(flow, {**param("acme"), "name": "second"})["id"]
    row = api.waiting_task(second)
    assert [blocker["resource"] for blocker in row["blocked_on"]] == ["api:acme"]
    gates.let("first", "second", "other")
    assert api.completed(first, second, other) == ["first", "second", "other"]


@pytest.mark.parametrize(
    ("tenant", "code", "said"),
    [
        ("", "TemplateError", "`tenant` is empty"),
        (None, "TemplateError", "`tenant` is null"),
        ("*", "InvalidResource", "`*`"),
        ("{x}", "TemplateError", "template again"),
        ("a\nb", "InvalidResource", "control character"),
    ],
)
def test_e8_r13_a_bad_value_is_refused_and_takes_no_limit(
    served: Served, tenant: str | None, code: str, said: str
) -> None:
    with pytest.raises(Refused) as refused:
        served.api.submit("sync", {"tenant": tenant, "name": "never"})
    assert (refused.value.status, refused.value.code) == (422, code) and said in refused.value.detail


def test_e8_a_null_that_is_given_is_not_the_default(served: Served) -> None:
    api = served.api
    run = api.submit("sync_by_default")
    assert run["needs"]["api:acme"] == 1
    api.completed(run["id"])
    with pytest.raises(Refused) as refused:
        api.submit("sync_by_default", {"tenant": None})
    assert refused.value.code == "TemplateError"


@pytest.mark.parametrize("tenant", ["pool:default", "flow:shop/sync", "backfill:1", "tag:gpu", "api:*"])
def test_r13_a_value_is_no_way_to_a_reserved_name_or_a_pattern(served: Served, tenant: str) -> None:
    with pytest.raises(Refused) as refused:
        served.api.submit("quick", {"name": tenant}, resources={"{name}": 1})
    assert (refused.value.status, refused.value.code) == (422, "InvalidResource")


@pytest.mark.parametrize(("order", "what"), [({}, "missing"), ({"tenant": ""}, "empty"), ({"tenant": [1]}, "a list")])
def test_e8_a_task_without_its_field_fails_the_run_before_the_body(
    served: Served, order: dict[str, Any], what: str
) -> None:
    api = served.api
    run = api.in_state(api.submit("loads", {"order": order, "name": "never"})["id"], "Failed")
    assert run["error"]["type"] == "TemplateError"
    assert f"`order.tenant` is {what}" in run["error"]["message"]
    # Its body would wait at a gate for ever.
    assert api.tasks(run["id"]) == []

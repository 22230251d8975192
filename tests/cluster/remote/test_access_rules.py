"""Whether a cluster's rules allow what is asked, as its RBAC means them."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from cluster.remote import access_rules
from cluster.remote.access_rules import Question
from kube.resources import JOBS, PODS, QUEUES


def rule(verbs, groups, resources, **more):
    return {"verbs": verbs, "apiGroups": groups, "resources": resources, **more}


def read(*rules, **status):
    return access_rules.read({"status": {"resourceRules": list(rules), **status}})


VOLCANO = [JOBS.group]


@pytest.mark.parametrize(
    ("given", "asked", "is_allowed"),
    [
        pytest.param(rule(["get"], VOLCANO, ["jobs"]), ("get", JOBS.id), True, id="named"),
        pytest.param(rule(["get"], VOLCANO, ["jobs"]), ("list", JOBS.id), False, id="another verb"),
        pytest.param(rule(["update"], VOLCANO, ["jobs"]), ("patch", JOBS.id), False, id="patch is no update"),
        pytest.param(rule(["get"], ["batch"], ["jobs"]), ("get", JOBS.id), False, id="another group"),
        pytest.param(rule(["get"], [""], ["pods"]), ("get", PODS.id), True, id="the core group"),
        pytest.param(rule(["get"], VOLCANO, ["cronjobs"]), ("get", JOBS.id), False, id="another resource"),
        pytest.param(rule(["*"], ["*"], ["*"]), ("delete", QUEUES.id), True, id="everything"),
        pytest.param(rule(["*"], ["*"], ["*"]), ("get", "pods/log"), True, id="everything has parts"),
        pytest.param(rule(["get"], [""], ["pods"]), ("get", "pods/log"), False, id="a part is not the whole"),
        pytest.param(rule(["get"], [""], ["pods/log"]), ("get", "pods"), False, id="the whole is no part"),
        pytest.param(rule(["get"], [""], ["pods/log"]), ("get", "pods/log"), True, id="a part"),
        pytest.param(rule(["get"], [""], ["*/log"]), ("get", "pods/log"), True, id="the part of anything"),
        pytest.param(rule(["get"], [""], ["*/log"]), ("get", "pods/exec"), False, id="another part"),
        pytest.param(rule(["get"], [""], ["pods"], resourceNames=["a"]), ("get", "pods"), False, id="one object only"),
        pytest.param(
            rule(["get"], [""], ["pods"], resourceNames=["a"]), ("get", "pods", "", "a"), True, id="that object"
        ),
        pytest.param(
            rule(["get"], [""], ["pods"], resourceNames=["*"]),
            ("get", "pods", "", "a"),
            False,
            id="no name stands for all",
        ),
        pytest.param(rule([], [], []), ("get", "pods"), False, id="an empty rule"),
        pytest.param(rule(None, None, None), ("get", "pods"), False, id="nulls"),
    ],
)
def test_rule(given, asked, is_allowed):
    question = Question(asked[0], asked[1], *(asked[2:] or ("d",)))
    assert read(given).allow(question) is is_allowed


def test_answer_without_rules_allows_nothing():
    assert not read().allow(Question("get", PODS.id, "d"))
    assert not access_rules.read({"status": {"resourceRules": None}}).rules


def test_rules_that_are_not_all_say_so():
    assert read().are_complete
    assert not read(incomplete=True, evaluationError="webhook").are_complete


words = st.lists(st.sampled_from(["get", "list", "*", "", "pods", "pods/log", "*/log", "apps"]), max_size=3)
rules = st.builds(rule, words, words, words)


@given(
    st.lists(rules, max_size=4),
    rules,
    st.sampled_from(["get", "list"]),
    st.sampled_from(["pods", "pods/log", "deployments.apps"]),
)
def test_another_rule_takes_nothing_away(some, more, verb, resource):
    asked = Question(verb, resource, "d")
    assert read(*some, more).allow(asked) == (read(*some).allow(asked) or read(more).allow(asked))

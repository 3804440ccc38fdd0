"""Operators that were written for an earlier version."""

from __future__ import annotations

import pytest

from arroyo_core import api
from arroyo_core.api import ArrowOperator


class Plain(ArrowOperator):
    def name(self):
        return "test.plain"

    def output_schema(self, inputs):
        return inputs[0]

    def process_batch(self, batch, ctx, collector):
        collector.collect(batch)


def test_methods_without_inputs_are_called_without_them_and_the_class_is_warned_about():
    with pytest.warns(DeprecationWarning, match=r"write (tables|is_row_wise)\(self, inputs\)") as told:

        class Old(Plain):
            def tables(self):
                return {"t": "config"}

            def is_row_wise(self):
                return True

    assert {(each.filename, str(each.message).split("(")[0].rpartition(".")[2]) for each in told} == {
        (__file__, "tables"),
        (__file__, "is_row_wise"),
    }
    assert Old().tables([]) == Old().tables() == {"t": "config"}
    assert Old().is_row_wise([])


def test_a_method_of_a_mixin_counts_too():
    class Tables:
        def tables(self):
            return {"t": "config"}

    with pytest.warns(DeprecationWarning, match="tables"):

        class Old(Tables, Plain):
            pass

    assert Old().tables([]) == {"t": "config"}
    assert not Old().is_row_wise([])


def test_a_class_that_inherits_such_a_method_is_not_warned_about_again():
    with pytest.warns(DeprecationWarning, match="tables"):

        class Old(Plain):
            def tables(self):
                return {}

    class Newer(Old):
        def name(self):
            return "test.newer"

    assert Newer().tables([]) == {}


def test_methods_with_inputs_are_given_them():
    class New(Plain):
        def tables(self, inputs):
            return {str(each): each for each in inputs}

    class OfTheClass(Plain):
        @classmethod
        def tables(cls, inputs):
            return {cls.__name__: inputs}

    assert OfTheClass().tables([1]) == {"OfTheClass": [1]}
    assert New().tables([1]) == {"1": 1}
    assert not New().is_row_wise([1])


def test_the_type_of_the_table_manager_is_found_under_its_former_name():
    with pytest.warns(DeprecationWarning, match="is called arroyo_core.api.StateTables now") as told:
        former = api.TableManager
    assert former is api.StateTables
    assert told[0].filename == __file__
    with pytest.raises(AttributeError, match="no attribute 'Tabel'"):
        _ = api.Tabel

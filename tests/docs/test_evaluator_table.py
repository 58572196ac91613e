from docs.evaluator_table import table, written


def test_the_page_of_evaluators_has_the_table_of_the_registers() -> None:
    assert written() == table()

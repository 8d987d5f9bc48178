"""``graphprep split``: a store with a column that says which rows are train, valid and test.

In: a store, SHARES and by what rows are split. Out: the same store, its arrays copied, with the column. Rows have keys; borders
among the keys make the parts: ``shares`` says how many rows go where, ``keys`` what the keys are, ``borders`` finds the keys at
which parts end; ``reverses`` which edges go together.
"""

"""Wrong answers to the book's exercises, a file a chapter: what exercises.py tries and test_exercises.py judges.

`WRONG` has three answers for each exercise, by the name of the cell with its solution, and beside each what the reader must be told.
`ALSO` names cells that must run first though no name says so; `NEVER` those that an exercise can do without and a test should;
`PATIENT` gives names other values, once the chapter has made them.
"""

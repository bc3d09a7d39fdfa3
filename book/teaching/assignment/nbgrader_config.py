"""What nbgrader needs for notebooks that Otter-Grader reads, too. Copy it into the folder of the course.

Otter's marks are raw cells with the tag `otter`. They go before anything else is done: nbgrader would take the `# BEGIN SOLUTION` in
one of them for a solution without an end.
"""

from nbconvert.preprocessors import TagRemovePreprocessor
from nbgrader.converters import GenerateAssignment

c = get_config()  # noqa: F821  # nbgrader puts it here

c.TagRemovePreprocessor.enabled = True
c.TagRemovePreprocessor.remove_cell_tags = {"otter"}
c.GenerateAssignment.preprocessors = [TagRemovePreprocessor, *GenerateAssignment.preprocessors.default_args[0]]

c.Execute.timeout = 60  # seconds a cell; a loop without an end costs no more
c.CourseDirectory.course_id = "minimx"

"""Chapter 14, build your own engine: wrong answers, and what a reader is told."""

PATIENT = {"PATIENCE": 2.5}  # seconds for a test that hangs

WRONG: dict[str, list[tuple[str, str]]] = {
    "step-1-solution": [
        (
            """
def admit(var):  # only the first
    turn = var.queue[0] if var.queue else None
    if turn is None or turn.granted:
        return []
    turn.granted = True
    return [turn]
""",
            "'rr' gives x",
        ),
        (
            """
def admit(var):  # reads overtake a write that waits
    granted = []
    for place, turn in enumerate(var.queue):
        if not turn.granted and (place == 0 or not (turn.writes or var.queue[0].writes)):
            turn.granted = True
            granted.append(turn)
    return granted
""",
            "'rwr' gives x.x",
        ),
        (
            """
def admit(var):  # again what was granted before
    granted = []
    for place, turn in enumerate(var.queue):
        if turn.writes and place > 0:
            break
        turn.granted = True
        granted.append(turn)
        if turn.writes:
            break
    return granted
""",
            "a turn was returned a second time",
        ),
    ],
    "step-2-solution": [
        (
            """
class Order(Base):  # ready as soon as it is pushed
    def enter(self, task):
        self.ready.append(task)

    def finish(self, task):
        task.done = True
        self.unfinished -= 1
""",
            "ready, and another task still writes y",
        ),
        (
            """
class Order(Base):  # those behind are not looked at
    def enter(self, task):
        for turn in task.turns:
            turn.var.queue.append(turn)
            for each in admit(turn.var):
                each.task.missing -= 1
        if not task.missing:
            self.ready.append(task)

    def finish(self, task):
        for turn in task.turns:
            turn.var.queue.remove(turn)
        task.done = True
        self.unfinished -= 1
""",
            "tasks never became ready",
        ),
        (
            """
class Order(Base):  # a task without turns is never ready
    def enter(self, task):
        for turn in task.turns:
            turn.var.queue.append(turn)
            for each in admit(turn.var):
                each.task.missing -= 1
                if not each.task.missing:
                    self.ready.append(each.task)

    def finish(self, task):
        self.unfinished -= 1
""",
            "a task without variables waits for nothing",
        ),
    ],
    "step-3-solution": [
        (
            """
class Workers(Pool):  # a task runs with the lock held
    def work(self):
        while True:
            with self.lock:
                self.lock.wait_for(lambda: self.ready or self.stopped)
                if not self.ready:
                    return
                self.run(self.ready.popleft())

    def run(self, task):
        task.result = task.function()
        self.finish(task)

    def waitall(self):
        with self.lock:
            self.lock.wait_for(lambda: not self.unfinished)
""",
            "two tasks that only read x did not run together",
        ),
        (
            """
class Workers(Pool):  # nobody waits
    def work(self):
        while True:
            with self.lock:
                self.lock.wait_for(lambda: self.ready or self.stopped)
                if not self.ready:
                    return
                task = self.ready.popleft()
            self.run(task)

    def run(self, task):
        task.result = task.function()
        with self.lock:
            self.finish(task)

    def waitall(self):
        pass
""",
            "program 0 computes otherwise",
        ),
        (
            """
class Workers(Pool):  # a task is run and not finished
    def work(self):
        while True:
            with self.lock:
                self.lock.wait_for(lambda: self.ready or self.stopped)
                if not self.ready:
                    return
                task = self.ready.popleft()
            self.run(task)

    def run(self, task):
        task.result = task.function()

    def waitall(self):
        with self.lock:
            self.lock.wait_for(lambda: not self.unfinished)
""",
            "it hangs: somebody waits for ever",
        ),
    ],
    "step-4-solution": [
        (
            """
class Helping(Workers):  # it sleeps, and does not help
    def wait(self, var):
        task = self.push(lambda: var.value, reads=[var])
        self.help(task)
        return task.result

    def help(self, task):
        with self.lock:
            self.lock.wait_for(lambda: task.done)
""",
            "it hangs: somebody waits for ever",
        ),
        (
            """
class Helping(Workers):  # it helps anybody
    def wait(self, var):
        task = self.push(lambda: var.value, reads=[var])
        self.help(task)
        return task.result

    def help(self, task):
        while not task.done:
            with self.lock:
                self.lock.wait_for(lambda: task.done or self.ready)
                helped = self.ready.popleft() if self.ready else None
            if helped:
                self.run(helped)
""",
            "it ran a task for which nobody waits",
        ),
        (
            """
class Helping(Workers):  # it does not wait at all
    def wait(self, var):
        task = self.push(lambda: var.value, reads=[var])
        self.help(task)
        return task.result

    def help(self, task):
        return None
""",
            "wait gave None, after three doublings of 1",
        ),
    ],
    "step-5-solution": [
        (
            """
class Failing(Remembering):  # what depends on a failure is computed
    def run(self, task):
        try:
            task.result = task.function()
        except BaseException as error:
            task.failure = error
        for var in task.writes:
            var.failure = task.failure
        with self.lock:
            self.finish(task)

    def wait(self, var):
        self.help(self.push(lambda: None, reads=[var]))
        if var.failure:
            raise var.failure
        return var.value
""",
            "a value that depends on a failure was read",
        ),
        (
            """
class Failing(Remembering):  # a new error for each that depends on it
    def run(self, task):
        try:
            if any(var.failure for var in task.reads):
                raise ZeroDivisionError("an input has failed")
            task.result = task.function()
        except BaseException as error:
            task.failure = error
        for var in task.writes:
            var.failure = task.failure
        with self.lock:
            self.finish(task)

    def wait(self, var):
        task = self.push(lambda: var.value, reads=[var])
        self.help(task)
        if task.failure:
            raise task.failure
        return task.result
""",
            "z should carry the error of x itself",
        ),
        (
            """
class Failing(Remembering):  # waitall does not know what was seen
    def run(self, task):
        failures = [var.failure for var in task.reads if var.failure]
        try:
            if failures:
                raise failures[0]
            task.result = task.function()
        except BaseException as error:
            task.failure = error
        for var in task.writes:
            var.failure = task.failure
        with self.lock:
            if task.failure:
                self.unseen.append(task.failure)
            self.finish(task)

    def wait(self, var):
        task = self.push(lambda: var.value, reads=[var])
        self.help(task)
        if task.failure:
            raise task.failure
        return task.result

    def waitall(self):
        super().waitall()
        if self.unseen:
            raise self.unseen.pop(0)
""",
            "waitall raised what was seen before",
        ),
    ],
    "step-6-solution": [
        (
            """
class Bounded(Counted):  # no bound
    def make_room(self, nbytes):
        with self.lock:
            self.nbytes += nbytes
""",
            "with room for two, [] of five have run",
        ),
        (
            """
class Bounded(Counted):  # one task at a time
    def make_room(self, nbytes):
        while self.nbytes:
            with self.lock:
                task = self.ready.popleft() if self.ready else None
            if task:
                self.run(task)
        with self.lock:
            self.nbytes += nbytes
""",
            "with room for two, [0, 1, 2, 3] of five have run",
        ),
        (
            """
class Bounded(Counted):  # what is too large never fits
    def make_room(self, nbytes):
        while True:
            with self.lock:
                self.lock.wait_for(lambda: self.nbytes + nbytes <= self.limit or self.ready)
                if self.nbytes + nbytes <= self.limit:
                    self.nbytes += nbytes
                    return
                task = self.ready.popleft()
            self.run(task)
""",
            "it hangs: somebody waits for ever",
        ),
    ],
    "solution-1": [
        ("def take(ready):\n    return ready[-1][0]  # the youngest", "got 'b'"),
        ("def take(ready):\n    return max(ready, key=lambda pair: abs(pair[1]))[0]  # the size", "got 'a'"),
        ("def take(ready):\n    return max(ready, key=lambda pair: pair[1])  # the pair", "got ('a', 0)"),
    ],
    "solution-2": [
        (
            "def free(e, x):\n    e.wait(x)  # it waits\n    x.value = None",
            "got 'then None after 0 reads; read []; at last None'",
        ),
        (
            "def free(e, x):\n    e.push(lambda: put(x, None), reads=[x])  # beside the reads",
            "got 'then data after 0 reads; read []; at last data'",
        ),
        (
            "def free(e, x):\n    e.push(lambda: None, writes=[x])  # and it stays",
            "got \"then data after 0 reads; read ['data']; at last data\"",
        ),
    ],
    "solution-3": [
        ("def circle(waits):\n    return []  # never", "got 'nobody'"),
        ("def circle(waits):\n    return sorted(task for task in waits if waits[task])  # whoever waits", "got 'a'"),
        (
            """
def circle(waits):  # those that wait for them, too
    left = dict(waits)
    for _ in waits:
        left = {task: others for task, others in left.items() if any(each in left for each in others)}
    return sorted(left)
""",
            "got 'a b'",
        ),
    ],
    "solution-4": [
        ("def notices(subject):\n    raise AssertionError  # always", "Case 1 of 3"),
        (
            """
def notices(subject):  # only Hasty
    e, x = subject(0), Var(0)
    e.push(lambda: put(x, 1), writes=[x])
    assert e.wait(x) == 1
""",
            "Case 2 of 3",
        ),
        (
            """
def notices(subject):  # only OnlyFirst
    e, x, y = subject(0), Var(0), Var(0)
    e.push(print, writes=[x, y])
    assert y.queue
""",
            "Case 3 of 3",
        ),
    ],
}

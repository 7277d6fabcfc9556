"""A connection on which scripts are sent ahead: the caller goes on while Redis works, and reads the answers later.

Redis answers in the order in which it was asked, so a script that is waited for comes after all that were sent ahead,
and finds what they did. Who is killed with answers unread may have had them carried out or not, as with a script that
is waited for: the epoch in each keeps them from being carried out under the next leader.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import redis

Value = str | bytes | int | float


@dataclass(frozen=True, slots=True)
class _Sent:
    """Something whose answer is to come."""

    named: Callable[[redis.ResponseError], Exception]
    then: Callable[[Any], None] | None


class Pipeline:
    """One connection of one thread, taken from the client's pool with the first script."""

    def __init__(self, client: Any) -> None:
        self._pool = client.connection_pool
        self._connection: Any = None
        self._sent: deque[_Sent] = deque()
        self._loaded: set[str] = set()
        self.count = 0
        """The number of what was sent last."""

    def send(
        self,
        script: Any,
        keys: Sequence[str],
        args: Sequence[Value],
        named: Callable[[redis.ResponseError], Exception],
        then: Callable[[Any], None] | None,
    ) -> int:
        """Have a script run; returns its number, for `settle`.

        Args:
            script: as the client's ``register_script`` returns it.
            named: makes the error that is raised of the one that Redis answers.
            then: is given the answer when it is read, which may be of use to nobody.
        """
        if script.sha not in self._loaded:  # nobody waits to hear that Redis does not know it
            self._send(("SCRIPT", "LOAD", script.script), _Sent(named, None))
            self._loaded.add(script.sha)
        self._send(("EVALSHA", script.sha, len(keys), *keys, *args), _Sent(named, then))
        return self.count

    def say(self, *command: Value) -> None:
        """Have a command carried out whose answer nobody needs."""
        self._send(command, _Sent(lambda error: error, None))

    def _send(self, command: Sequence[Value], sent: _Sent) -> None:
        if self._connection is None:
            self._connection = self._pool.get_connection()
        try:
            # The check of its health is a PING, whose answer would come after those that are to come.
            self._connection.send_command(*command, check_health=not self._sent)
        except BaseException:
            self.close()
            raise
        self._sent.append(sent)
        self.count += 1

    def call(
        self,
        script: Any,
        keys: Sequence[str],
        args: Sequence[Value],
        named: Callable[[redis.ResponseError], Exception],
    ) -> Any:
        """Have a script run and wait for its answer, and so for all earlier ones.

        Raises:
            what ``named`` made of the first error that Redis answered, be it to an earlier script; what
            `dsched.state.client.UNAVAILABLE` lists: Redis is away.
        """
        answers: list[Any] = []
        self.send(script, keys, args, named, answers.append)
        self.settle()
        return answers[0]

    def settle(self, number: int | None = None) -> None:
        """Read the answers that are to come.

        Args:
            number: of the script whose answer is the last to be waited for.

        Raises:
            as `call`. After an error the others are read all the same, but nobody is given them.
        """
        first: Exception | None = None
        left = 0 if number is None else self.count - number
        while len(self._sent) > left:
            sent = self._sent.popleft()
            try:
                answer = self._connection.read_response()
            except redis.ResponseError as error:
                first = first or sent.named(error)
            except BaseException:
                self._sent.appendleft(sent)  # its answer may come yet: the connection is of no more use
                self.close()
                raise
            else:
                if first is None and sent.then is not None:
                    sent.then(answer)
        if first is not None:
            raise first

    @property
    def waiting(self) -> bool:
        """Whether answers are to come."""
        return bool(self._sent)

    def has_answer(self) -> bool:
        """Whether an answer to what was sent has come, or begins to; a connection that is lost has none."""
        try:
            return bool(self._sent) and bool(self._connection.can_read(0))
        except redis.ConnectionError:  # whoever settles is told
            return False

    def answered(self, number: int) -> bool:
        """Whether the answer to the script with this number has been read."""
        return len(self._sent) <= self.count - number

    def close(self) -> None:
        """Give the connection back; answers that are still to come go with it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            if self._sent:
                connection.disconnect()
            self._pool.release(connection)
        self._sent.clear()
        self._loaded.clear()

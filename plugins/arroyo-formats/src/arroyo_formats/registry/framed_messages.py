"""Messages with the number of their schema in front, of formats that can read a value without its schema."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from arroyo_formats.format import BadMessage, Decoded, Encoded, MessageReader, MessageWriter
from arroyo_formats.registry.framing import frame, header, split
from arroyo_formats.registry.registration import Registration


class FramedReader(MessageReader):
    """Takes the numbers off, and leaves the rest to another reader. A message without a number is bad."""

    def __init__(self, values: MessageReader) -> None:
        self.schema = values.schema
        self._values = values

    def read(self, messages: Sequence[bytes]) -> Decoded:
        framed = split(messages)
        decoded = self._values.read(framed.bodies)
        places = framed.origins
        if places is None:
            return decoded
        bad = [*framed.bad, *(BadMessage(int(places[each.index]), each.error) for each in decoded.bad)]
        origins = places if decoded.origins is None else places[decoded.origins]
        return Decoded(decoded.batch, origins, sorted(bad, key=lambda each: each.index))


class FramedWriter(MessageWriter):
    """Puts the number of a schema in front of what another writer makes; the registry gets it with the first rows."""

    def __init__(self, values: MessageWriter, registration: Registration) -> None:
        self._values = values
        self._registration = registration
        self._prefix = b""

    def write(self, batch: pa.RecordBatch) -> Encoded:
        encoded = self._values.write(batch)
        if not self._prefix:
            self._prefix = header(self._registration.number())
        return Encoded(frame(encoded.messages, self._prefix), encoded.origins)

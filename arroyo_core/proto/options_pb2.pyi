from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor
ORDERED_MAP_FIELD_NUMBER: _ClassVar[int]
ordered_map: _descriptor.FieldDescriptor
DURATION_FIELD_NUMBER: _ClassVar[int]
duration: _descriptor.FieldDescriptor
SIZE_FIELD_NUMBER: _ClassVar[int]
size: _descriptor.FieldDescriptor
REQUIRED_FIELD_NUMBER: _ClassVar[int]
required: _descriptor.FieldDescriptor

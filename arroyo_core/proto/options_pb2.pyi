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
CHOICES_FIELD_NUMBER: _ClassVar[int]
choices: _descriptor.FieldDescriptor
SUGGESTIONS_FIELD_NUMBER: _ClassVar[int]
suggestions: _descriptor.FieldDescriptor
LEAST_FIELD_NUMBER: _ClassVar[int]
least: _descriptor.FieldDescriptor
GREATEST_FIELD_NUMBER: _ClassVar[int]
greatest: _descriptor.FieldDescriptor
INTERNAL_FIELD_NUMBER: _ClassVar[int]
internal: _descriptor.FieldDescriptor
DEFAULT_FIELD_NUMBER: _ClassVar[int]
default: _descriptor.FieldDescriptor
SECRET_FIELD_NUMBER: _ClassVar[int]
secret: _descriptor.FieldDescriptor
CONFIG_OF_FIELD_NUMBER: _ClassVar[int]
config_of: _descriptor.FieldDescriptor
SQL_FIELD_NUMBER: _ClassVar[int]
sql: _descriptor.FieldDescriptor

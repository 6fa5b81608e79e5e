//! The columns of our Parquet files: the layout type, and the layout of the log. `spec/log-archive.md` defines each
//! column.
//!
//! Every field of a `LogRecord` has a column, and so has the clock information of its batch. Two physical types are
//! enough: 64-bit numbers and byte strings. Texts are never null, because a record does not distinguish empty and
//! absent texts. Numbers are null where they can be absent. A floating-point column is stored as 64-bit numbers, the
//! bits of its values.

use tampu_types::RecordField;

use super::bad::Corrupt;

/// Type and meaning of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Nanoseconds since 1970, UTC.
    Time,
    /// Signed number of 64 bits.
    Number,
    /// Unsigned number of 64 bits.
    UnsignedNumber,
    /// Signed number that may be absent.
    OptionalNumber,
    /// Floating point of 64 bits that may be absent.
    OptionalDouble,
    /// UTF-8 text, never absent.
    Text,
    /// Byte string, never absent.
    Bytes,
}

impl Shape {
    /// Returns true for byte strings, false for numbers.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Shape::Text | Shape::Bytes)
    }

    /// Returns whether a value may be absent.
    pub(crate) fn is_optional(self) -> bool {
        matches!(self, Shape::OptionalNumber | Shape::OptionalDouble)
    }
}

/// One column of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Name of the column in the file.
    pub name: &'static str,
    pub shape: Shape,
}

impl ColumnSpec {
    /// Makes the description of a column.
    pub const fn new(name: &'static str, shape: Shape) -> ColumnSpec {
        ColumnSpec { name, shape }
    }
}

/// Columns of a kind of file, in their order.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    /// Name of the schema, as `log`.
    pub name: &'static str,
    pub columns: &'static [ColumnSpec],
    /// Index of the time column, by which rows are ordered.
    pub time: usize,
}

macro_rules! columns {
    ($($variant:ident $name:literal $shape:ident,)*) => {
        /// Columns of the table of log records.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum Column {
            $($variant,)*
        }

        impl Column {
            /// All columns, in the order of the file.
            pub(crate) const ALL: &[Column] = &[$(Column::$variant,)*];

            /// Layout of the log's files.
            pub(crate) const LOG: Layout = Layout {
                name: "log",
                columns: &[$(ColumnSpec { name: $name, shape: Shape::$shape },)*],
                time: Column::Time as usize,
            };
        }
    };
}

columns! {
    Time "time" Time,
    Received "received" Time,
    Level "level" Text,
    LevelNumber "level_number" Number,
    Priority "priority" OptionalNumber,
    Message "message" Text,
    Data "data" Text,
    Logger "logger" Text,
    File "file" Text,
    Line "line" OptionalNumber,
    Routine "routine" Text,
    Host "host" Text,
    Process "process" Text,
    Thread "thread" Text,
    Context "context" Text,
    SourceObject "source_object" Text,
    Audiences "audiences" Text,
    Array "array" Text,
    Antenna "antenna" Text,
    RunId "run_id" Text,
    StackId "stack_id" Text,
    StackLevel "stack_level" OptionalNumber,
    LogId "log_id" Text,
    Uri "uri" Text,
    TraceId "trace_id" Text,
    SpanId "span_id" Text,
    Archive "archive" Text,
    Attributes "attributes" Text,
    Incarnation "incarnation" Text,
    Ring "ring" Number,
    Number "number" UnsignedNumber,
    Source "source" Text,
    Clock "clock" Text,
    TaiOffset "tai_offset" Number,
    UnknownRecord "unknown_record" Bytes,
    UnknownOrigin "unknown_origin" Bytes,
}

impl Column {
    /// Number of columns.
    pub(crate) const COUNT: usize = Column::ALL.len();

    /// Returns the column of a catalogue field. A field without a column is an error of this release, which a test
    /// would find.
    pub(crate) fn of(field: RecordField) -> Result<Column, Corrupt> {
        let is_meant = |column: &&Column| column.name() == field.name();
        Column::ALL.iter().find(is_meant).copied().ok_or(Corrupt("a field without a column"))
    }

    /// Returns the name in the file.
    pub(crate) fn name(self) -> &'static str {
        Column::LOG.columns[self.index()].name
    }

    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// Returns whether a value may be absent.
    pub(crate) fn is_optional(self) -> bool {
        Column::LOG.columns[self.index()].shape.is_optional()
    }
}

impl From<Column> for usize {
    fn from(column: Column) -> usize {
        column.index()
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::record::field::FieldKind;

    use super::*;

    #[test]
    fn every_field_of_a_record_has_its_column() {
        for field in RecordField::ALL.into_iter().filter(|field| *field != RecordField::Id) {
            let column = Column::of(field).unwrap_or_else(|_| panic!("{field} has no column"));
            let expected = match field.kind() {
                FieldKind::Time => Shape::Time,
                FieldKind::Number => Shape::OptionalNumber,
                FieldKind::Text
                | FieldKind::Level
                | FieldKind::Names
                | FieldKind::Hexadecimal
                | FieldKind::Data
                | FieldKind::Archive => Shape::Text,
                FieldKind::Id => continue,
            };
            assert_eq!(Column::LOG.columns[column.index()].shape, expected, "{field}");
        }
        // The parts of the id, the batch's facts about its records, and the members that a later release added.
        let others = ["level_number", "incarnation", "ring", "number", "source", "clock", "tai_offset"];
        let unknown = ["unknown_record", "unknown_origin"];
        for column in Column::ALL.iter().map(|column| column.name()) {
            let is_field = RecordField::from_name(column).is_some();
            assert!(is_field || others.contains(&column) || unknown.contains(&column), "{column} is in no catalogue");
        }
    }
}

//! The columns of our Parquet files: what a layout is, and the layout of the log's; `spec/log-archive.md` says what each of its
//! columns means.
//!
//! Everything a `LogRecord` holds has a column, and so has what its batch told of the clock. Two physical types do: 64-bit
//! numbers and byte strings. Texts are never null, because empty and absent are one in a record; numbers are where they can be
//! absent. A column of floating point is one of 64-bit numbers, its values' bits.

/// How a column's values are to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// ns UTC.
    Time,
    /// 64 bits with sign.
    Number,
    /// 64 bits without.
    UnsignedNumber,
    /// A number, or none.
    OptionalNumber,
    /// Floating point of 64 bits, or none.
    OptionalDouble,
    /// UTF-8, never absent.
    Text,
    /// Bytes, never absent.
    Bytes,
}

impl Shape {
    /// Whether its values are byte strings; numbers else.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Shape::Text | Shape::Bytes)
    }

    /// Whether a row may have no value.
    pub(crate) fn is_optional(self) -> bool {
        matches!(self, Shape::OptionalNumber | Shape::OptionalDouble)
    }
}

/// One column of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Its name in the file.
    pub name: &'static str,
    /// How its values are to be understood.
    pub shape: Shape,
}

/// The columns of a kind of file, in their order there.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    /// What the rows are, as `log`: the schema's name.
    pub name: &'static str,
    /// The columns.
    pub columns: &'static [ColumnSpec],
    /// Which of them is the time by which rows are ordered.
    pub time: usize,
}

macro_rules! columns {
    ($($variant:ident $name:literal $shape:ident,)*) => {
        /// One column.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum Column {
            $($variant,)*
        }

        impl Column {
            /// All of them, in the order of the file.
            pub(crate) const ALL: &[Column] = &[$(Column::$variant,)*];

            /// The layout of the log's files.
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
    /// How many there are.
    pub(crate) const COUNT: usize = Column::ALL.len();

    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

impl From<Column> for usize {
    fn from(column: Column) -> usize {
        column.index()
    }
}

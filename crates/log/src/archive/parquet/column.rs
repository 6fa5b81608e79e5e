//! The columns of our Parquet files: `spec/log-archive.md` says what each means.
//!
//! Everything a `LogRecord` holds has a column, and so has what its batch told of the clock. Two physical types do: 64-bit
//! numbers and byte strings. Texts are never null, because empty and absent are one in a record; numbers are where they can be
//! absent.

/// How a column's values are to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// ns UTC.
    Time,
    Number,
    UnsignedNumber,
    OptionalNumber,
    Text,
    Bytes,
}

impl Shape {
    /// Whether its values are byte strings; numbers else.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Shape::Text | Shape::Bytes)
    }
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

            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Column::$variant => $name,)*
                }
            }

            pub(crate) fn shape(self) -> Shape {
                match self {
                    $(Column::$variant => Shape::$shape,)*
                }
            }
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

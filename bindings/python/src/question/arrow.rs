//! Tables in Arrow's C stream interface: other packages take the columns where they are.
//! <https://arrow.apache.org/docs/format/CStreamInterface.html>
//!
//! ```text
//! ArrowArrayStream -> get_schema -> ArrowSchema: a struct with a child for each column
//!                  -> get_next   -> ArrowArray: a batch, a child for each column, whose buffers are those of `Column`
//! ```
//! A column of names has its codes, and as `dictionary` an array of the texts.
//!
//! Every structure owns what it points to by `private`. The reader calls `release` once, or moves the structure away and
//! sets `release` to NULL. An array holds its batch by an `Arc`, so the memory stays while any reader has it.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    ptr,
    sync::Arc,
};

use tampu_archive::columns::{Column, ColumnBatch, ColumnData, ColumnType, Names};

/// `ArrowSchema`.
#[repr(C)]
pub struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private: *mut c_void,
}

/// `ArrowArray`.
#[repr(C)]
pub struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private: *mut c_void,
}

/// `ArrowArrayStream`.
#[repr(C)]
pub struct ArrowArrayStream {
    get_schema: unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int,
    get_next: unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int,
    get_last_error: unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char,
    release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    private: *mut c_void,
}

/// `ARROW_FLAG_NULLABLE`.
const NULLABLE: i64 = 2;

// SAFETY: the structure owns a `Stream`, whose members may be sent; the interface lets any one thread use it at a time.
unsafe impl Send for ArrowArrayStream {}

impl Drop for ArrowArrayStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: nobody has moved the structure away, because `release` would be NULL.
            unsafe { release(self) }
        }
    }
}

/// Property of a stream.
struct Stream {
    schema: Vec<(&'static str, ColumnType)>,
    batches: std::vec::IntoIter<Arc<ColumnBatch>>,
}

/// Zeros for the columns without a value, of which a batch has at most this many rows.
static ZEROS: Zeros = Zeros([0; ZEROS_ROWS + 1]);
const ZEROS_ROWS: usize = 65_536;

#[repr(align(64))]
struct Zeros([u64; ZEROS_ROWS + 1]);

/// Returns a stream of these batches.
pub fn stream(schema: &[(&'static str, ColumnType)], batches: Vec<Arc<ColumnBatch>>) -> ArrowArrayStream {
    let owned = Box::new(Stream { schema: schema.to_vec(), batches: batches.into_iter() });
    ArrowArrayStream { get_schema, get_next, get_last_error, release: Some(release_stream), private: Box::into_raw(owned).cast() }
}

unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the reader passes the stream that `stream` made and that is not released, so `private` is its `Stream`.
    let owned = unsafe { &*(*stream).private.cast::<Stream>() };
    let columns = owned.schema.iter().map(|(name, kind)| {
        let (format, children, dictionary) = match kind {
            ColumnType::Text => (c"u", Vec::new(), None),
            ColumnType::Name => (c"i", Vec::new(), Some(schema(c"u", "", Vec::new(), None))),
            ColumnType::Time => (c"tsn:UTC", Vec::new(), None),
            ColumnType::Integer => (c"l", Vec::new(), None),
            ColumnType::Number => (c"g", Vec::new(), None),
            ColumnType::Numbers => (c"+l", vec![schema(c"g", "item", Vec::new(), None)], None),
        };
        schema(format, name, children, dictionary)
    });
    // SAFETY: the reader passes memory for a schema, which may be uninitialised.
    unsafe { ptr::write(out, schema(c"+s", "", columns.collect(), None)) };
    0
}

unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: as in `get_schema`; one thread uses the stream at a time.
    let owned = unsafe { &mut *(*stream).private.cast::<Stream>() };
    let made = match owned.batches.next() {
        Some(batch) => {
            let columns = batch.columns.iter().zip(&owned.schema);
            let columns = columns.map(|(column, (_, kind))| of_column(&batch, column, *kind)).collect();
            array(&batch, batch.rows, 0, vec![ptr::null()], columns, None)
        }
        // A released array ends the stream.
        None => array_without_owner(),
    };
    // SAFETY: the reader passes memory for an array, which may be uninitialised.
    unsafe { ptr::write(out, made) };
    0
}

unsafe extern "C" fn get_last_error(_: *mut ArrowArrayStream) -> *const c_char {
    // Nothing fails: the answer is complete before the stream is made.
    ptr::null()
}

unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: it is called once, for a stream that `stream` made, so `private` is a `Stream` from a box.
    unsafe {
        drop(Box::from_raw((*stream).private.cast::<Stream>()));
        (*stream).release = None;
    }
}

/// Property of a schema: its name, its children, its dictionary.
struct SchemaOwner {
    name: CString,
    children: Vec<*mut ArrowSchema>,
    dictionary: *mut ArrowSchema,
}

fn schema(format: &'static CStr, name: &str, children: Vec<ArrowSchema>, dictionary: Option<ArrowSchema>) -> ArrowSchema {
    let children = children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
    let dictionary = dictionary.map_or(ptr::null_mut(), |dictionary| Box::into_raw(Box::new(dictionary)));
    // Names of columns are known, and have no zero in them.
    let mut owner = Box::new(SchemaOwner { name: CString::new(name).unwrap_or_default(), children, dictionary });
    ArrowSchema {
        format: format.as_ptr(),
        name: owner.name.as_ptr(),
        metadata: ptr::null(),
        flags: NULLABLE,
        n_children: owner.children.len() as i64,
        children: owner.children.as_mut_ptr(),
        dictionary,
        release: Some(release_schema),
        private: Box::into_raw(owner).cast(),
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: it is called once, for a schema that `schema` made. Each child is from a box; one that the reader has moved away
    // has no `release`.
    unsafe {
        let owner = Box::from_raw((*schema).private.cast::<SchemaOwner>());
        for child in owner.children.into_iter().chain((!owner.dictionary.is_null()).then_some(owner.dictionary)) {
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
        (*schema).release = None;
    }
}

/// Property of an array: its share of the batch, the list of its buffers, its children, its dictionary.
struct ArrayOwner {
    _batch: Arc<ColumnBatch>,
    buffers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
    dictionary: *mut ArrowArray,
}

/// An array that is released.
fn array_without_owner() -> ArrowArray {
    ArrowArray {
        length: 0,
        null_count: 0,
        offset: 0,
        n_buffers: 0,
        n_children: 0,
        buffers: ptr::null_mut(),
        children: ptr::null_mut(),
        dictionary: ptr::null_mut(),
        release: None,
        private: ptr::null_mut(),
    }
}

/// Makes an array whose buffers are in the batch, which does not change any more.
fn array(
    batch: &Arc<ColumnBatch>,
    length: usize,
    missing: usize,
    buffers: Vec<*const c_void>,
    children: Vec<ArrowArray>,
    dictionary: Option<ArrowArray>,
) -> ArrowArray {
    let children = children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
    let dictionary = dictionary.map_or(ptr::null_mut(), |dictionary| Box::into_raw(Box::new(dictionary)));
    let mut owner = Box::new(ArrayOwner { _batch: batch.clone(), buffers, children, dictionary });
    ArrowArray {
        length: length as i64,
        null_count: missing as i64,
        n_buffers: owner.buffers.len() as i64,
        n_children: owner.children.len() as i64,
        buffers: owner.buffers.as_mut_ptr(),
        children: owner.children.as_mut_ptr(),
        dictionary,
        release: Some(release_array),
        private: Box::into_raw(owner).cast(),
        ..array_without_owner()
    }
}

fn of_column(batch: &Arc<ColumnBatch>, column: &Column, kind: ColumnType) -> ArrowArray {
    if column.data == ColumnData::Missing {
        return without_values(batch, kind);
    }
    let present = if column.missing == 0 { ptr::null() } else { column.present.as_ptr().cast() };
    let (buffers, children, dictionary) = match &column.data {
        ColumnData::Missing => (Vec::new(), Vec::new(), None),
        ColumnData::Texts(ends, bytes) => (vec![present, ends.as_ptr().cast(), bytes.as_ptr().cast()], Vec::new(), None),
        ColumnData::Names(codes, names) => (vec![present, codes.as_ptr().cast()], Vec::new(), Some(of_names(batch, names))),
        ColumnData::Integers(all) => (vec![present, all.as_ptr().cast()], Vec::new(), None),
        ColumnData::Numbers(all) => (vec![present, all.as_ptr().cast()], Vec::new(), None),
        ColumnData::Rows(ends, all) => {
            let elements = array(batch, all.len(), 0, vec![ptr::null(), all.as_ptr().cast()], Vec::new(), None);
            (vec![present, ends.as_ptr().cast()], vec![elements], None)
        }
    };
    array(batch, batch.rows, column.missing, buffers, children, dictionary)
}

fn of_names(batch: &Arc<ColumnBatch>, names: &Names) -> ArrowArray {
    let buffers = vec![ptr::null(), names.ends.as_ptr().cast(), names.bytes.as_ptr().cast()];
    array(batch, names.len(), 0, buffers, Vec::new(), None)
}

/// Makes an array whose values are all missing.
fn without_values(batch: &Arc<ColumnBatch>, kind: ColumnType) -> ArrowArray {
    debug_assert!(batch.rows <= ZEROS_ROWS, "a batch has a bounded number of rows");
    let zeros: *const c_void = ZEROS.0.as_ptr().cast();
    let empty = |buffers: usize| array(batch, 0, 0, vec![zeros; buffers], Vec::new(), None);
    let (buffers, children, dictionary) = match kind {
        ColumnType::Text => (3, Vec::new(), None),
        ColumnType::Name => (2, Vec::new(), Some(empty(3))),
        ColumnType::Time | ColumnType::Integer | ColumnType::Number => (2, Vec::new(), None),
        ColumnType::Numbers => (2, vec![empty(2)], None),
    };
    array(batch, batch.rows, batch.rows, vec![zeros; buffers], children, dictionary)
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: as in `release_schema`.
    unsafe {
        let owner = Box::from_raw((*array).private.cast::<ArrayOwner>());
        for child in owner.children.into_iter().chain((!owner.dictionary.is_null()).then_some(owner.dictionary)) {
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
        (*array).release = None;
    }
}

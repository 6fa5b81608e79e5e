//! Values of Python for attributes, and values of events for Python.

use pyo3::{
    IntoPyObjectExt,
    exceptions::PyTypeError,
    prelude::*,
    types::{PyBool, PyBytes, PyFloat, PyList, PyString},
};
use tampu_event::{DataType, Format, Value};
use tampu_types::event::{AttributeConfig, Data, DevState, Element, Shape, ValueView};

use crate::buffer::{Buffer, Plain};

/// Returns the error of a value that is not one of the attribute.
fn wrong(config: &AttributeConfig, given: &Bound<'_, PyAny>, why: impl std::fmt::Display) -> PyErr {
    let kind = given.get_type().name().map(|name| name.to_string()).unwrap_or_default();
    PyTypeError::new_err(format!(
        "{} is a {} of type {}; a value of type {kind} was given: {why}",
        config.name, config.format, config.data_type
    ))
}

/// Elements of a value that have to be made from Python's objects, with their arrangement.
struct Made<T> {
    elements: Vec<T>,
    shape: Shape,
}

fn count(length: usize) -> u32 {
    // The encoder rejects a shape that does not fit the number of elements.
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Reads the elements of a scalar, a list or a list of lists, each by `read`.
fn elements<'py, T>(
    config: &AttributeConfig,
    given: &Bound<'py, PyAny>,
    read: impl Fn(&Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Made<T>> {
    let read = |one: &Bound<'py, PyAny>| {
        let is_flag = one.is_exact_instance_of::<PyBool>() && config.data_type != DataType::Boolean;
        if is_flag {
            return Err(wrong(config, one, "a bool is not a number here"));
        }
        read(one).map_err(|error| wrong(config, one, error.value(one.py())))
    };
    let row = |of: &Bound<'py, PyAny>, into: &mut Vec<T>| -> PyResult<usize> {
        if of.is_instance_of::<PyString>() {
            return Err(wrong(config, of, "a list, a tuple or an array is needed"));
        }
        let before = into.len();
        for one in of.try_iter().map_err(|error| wrong(config, of, error.value(of.py())))? {
            into.push(read(&one?)?);
        }
        Ok(into.len() - before)
    };
    let mut all = Vec::new();
    let shape = match config.format {
        Format::Scalar => {
            all.push(read(given)?);
            Shape::SCALAR
        }
        Format::Spectrum => Shape::spectrum(count(row(given, &mut all)?)),
        Format::Image => {
            let mut lengths = Vec::new();
            for one in given.try_iter().map_err(|error| wrong(config, given, error.value(given.py())))? {
                lengths.push(row(&one?, &mut all)?);
            }
            let length = lengths.first().copied().unwrap_or(0);
            if lengths.iter().any(|&other| other != length) {
                return Err(wrong(config, given, "its rows have different lengths"));
            }
            Shape::image(count(length), count(lengths.len()))
        }
    };
    Ok(Made { elements: all, shape })
}

/// Returns the arrangement of an array in memory.
fn shape_of(config: &AttributeConfig, given: &Bound<'_, PyAny>, dimensions: &[isize]) -> PyResult<Shape> {
    let length = |of: isize| count(usize::try_from(of).unwrap_or(0));
    match (config.format, dimensions) {
        (Format::Scalar, [] | [1]) => Ok(Shape::SCALAR),
        (Format::Spectrum, [x]) => Ok(Shape::spectrum(length(*x))),
        (Format::Image, [y, x]) => Ok(Shape::image(length(*x), length(*y))),
        _ => Err(wrong(config, given, format_args!("it is an array of {} dimensions", dimensions.len()))),
    }
}

/// Uses a value of numbers: those of an array where they are, others copied.
fn numbers<'py, T, R>(
    config: &AttributeConfig,
    given: &Bound<'py, PyAny>,
    using: impl FnOnce(Value<'_>) -> PyResult<R>,
) -> PyResult<R>
where
    T: Plain + Element + for<'a> FromPyObject<'a, 'py>,
{
    if config.format != Format::Scalar
        && !given.is_exact_instance_of::<PyList>()
        && let Some(buffer) = Buffer::of(given)
    {
        let shape = shape_of(config, given, buffer.shape())?;
        let Some(elements) = buffer.elements() else {
            return Err(wrong(
                config,
                given,
                format_args!("its elements are '{}', in the words of the module struct", buffer.format()),
            ));
        };
        return using(Value { data: T::data(elements), shape });
    }
    let made = elements(config, given, |one| one.extract::<T>().map_err(Into::into))?;
    using(Value { data: T::data(&made.elements), shape: made.shape })
}

/// Borrows a value of Python as one of an attribute.
pub fn with_value<R>(
    config: &AttributeConfig,
    given: &Bound<'_, PyAny>,
    using: impl FnOnce(Value<'_>) -> PyResult<R>,
) -> PyResult<R> {
    match config.data_type {
        DataType::UChar => numbers::<u8, R>(config, given, using),
        DataType::Short => numbers::<i16, R>(config, given, using),
        DataType::UShort => numbers::<u16, R>(config, given, using),
        DataType::Long => numbers::<i32, R>(config, given, using),
        DataType::ULong => numbers::<u32, R>(config, given, using),
        DataType::Long64 => numbers::<i64, R>(config, given, using),
        DataType::ULong64 => numbers::<u64, R>(config, given, using),
        DataType::Float => numbers::<f32, R>(config, given, using),
        DataType::Double => match given.cast_exact::<PyFloat>() {
            // The usual number of Python needs no list of elements.
            Ok(number) if config.format == Format::Scalar => using(Value::scalar(&number.value())),
            _ => numbers::<f64, R>(config, given, using),
        },
        DataType::Boolean => {
            let made = elements(config, given, |one| one.extract::<bool>())?;
            using(Value { data: Data::Boolean(&made.elements), shape: made.shape })
        }
        DataType::String => {
            let made = elements(config, given, |one| one.extract::<String>())?;
            using(Value { data: Data::String(&made.elements), shape: made.shape })
        }
        DataType::State => {
            let made = elements(config, given, |one| {
                let name = one.extract::<String>()?;
                name.parse::<DevState>().map_err(|error| PyTypeError::new_err(error.to_string()))
            })?;
            using(Value { data: Data::State(&made.elements), shape: made.shape })
        }
        DataType::Enum => {
            let made = elements(config, given, |one| match one.cast::<PyString>() {
                Ok(label) => {
                    let label = label.to_string_lossy();
                    let index = config.labels.iter().position(|known| *known == label);
                    let index = index.and_then(|index| i16::try_from(index).ok());
                    index.ok_or_else(|| PyTypeError::new_err(format!("'{label}' is not one of its labels")))
                }
                Err(_) => one.extract::<i16>(),
            })?;
            using(Value { data: Data::Enum(&made.elements), shape: made.shape })
        }
        DataType::Encoded => {
            let (format, bytes) = given
                .extract::<(String, Bound<'_, PyBytes>)>()
                .map_err(|_| wrong(config, given, "a pair of a format and its bytes is needed"))?;
            using(Value::encoded(&format, bytes.as_bytes()))
        }
    }
}

/// Elements in memory, as numpy's array interface describes them.
#[derive(Debug, Clone)]
pub struct Layout {
    pub address: usize,
    pub kind: &'static str,
    pub dimensions: Vec<u32>,
}

/// Returns the layout of an array of numbers or booleans; `None` for other values, or elements that are not in one piece.
pub fn layout(value: &ValueView<'_>, shape: Shape) -> Option<Layout> {
    macro_rules! at {
        ($all:expr, $kind:expr) => {
            ($all.as_slice()?.as_ptr().addr(), $kind)
        };
    }
    let (address, kind) = match value {
        ValueView::Boolean(all) => (all.as_ptr().addr(), "|b1"),
        ValueView::UChar(all) => (all.as_ptr().addr(), "|u1"),
        ValueView::Short(all) => at!(all, "<i2"),
        ValueView::UShort(all) => at!(all, "<u2"),
        ValueView::Long(all) => at!(all, "<i4"),
        ValueView::ULong(all) => at!(all, "<u4"),
        ValueView::Long64(all) => at!(all, "<i8"),
        ValueView::ULong64(all) => at!(all, "<u8"),
        ValueView::Float(all) => at!(all, "<f4"),
        ValueView::Double(all) => at!(all, "<f8"),
        _ => return None,
    };
    let dimensions = match shape.format {
        Format::Scalar => return None,
        Format::Spectrum => vec![shape.x],
        Format::Image => vec![shape.y, shape.x],
    };
    Some(Layout { address, kind, dimensions })
}

/// Returns a value as Python's own objects: one, a list, or a list of rows.
pub fn objects<'py>(py: Python<'py>, value: &ValueView<'_>, shape: Shape, labels: &[String]) -> PyResult<Bound<'py, PyAny>> {
    let label = |index: i16| usize::try_from(index).ok().and_then(|index| labels.get(index)).cloned();
    macro_rules! arranged {
        ($all:expr) => {
            arranged(py, shape, $all)
        };
    }
    match value {
        ValueView::Boolean(all) => arranged!(all.iter().map(|byte| *byte != 0)),
        ValueView::UChar(all) => arranged!(all.iter().copied().map(u64::from)),
        ValueView::Short(all) => arranged!(all.iter()),
        ValueView::UShort(all) => arranged!(all.iter()),
        ValueView::Long(all) => arranged!(all.iter()),
        ValueView::ULong(all) => arranged!(all.iter()),
        ValueView::Long64(all) => arranged!(all.iter()),
        ValueView::ULong64(all) => arranged!(all.iter()),
        ValueView::Float(all) => arranged!(all.iter()),
        ValueView::Double(all) => arranged!(all.iter()),
        ValueView::String(all) => arranged!(all.iter()),
        ValueView::State(all) => arranged!(all.iter().map(|number| DevState::read(*number).name())),
        ValueView::Enum(all) => arranged!(all.iter().map(|index| label(index).unwrap_or_else(|| index.to_string()))),
        ValueView::Encoded { format, data } => Ok((*format, PyBytes::new(py, data)).into_pyobject(py)?.into_any()),
    }
}

fn arranged<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    shape: Shape,
    mut all: impl Iterator<Item = T>,
) -> PyResult<Bound<'py, PyAny>> {
    let object = |one: T| one.into_bound_py_any(py);
    match shape.format {
        Format::Scalar => all.next().map_or_else(|| Ok(py.None().into_bound(py)), object),
        Format::Spectrum => Ok(PyList::new(py, all.map(object).collect::<PyResult<Vec<_>>>()?)?.into_any()),
        Format::Image => {
            let rows = PyList::empty(py);
            for _ in 0..shape.y {
                let row = all.by_ref().take(shape.x as usize).map(object).collect::<PyResult<Vec<_>>>()?;
                rows.append(PyList::new(py, row)?)?;
            }
            Ok(rows.into_any())
        }
    }
}

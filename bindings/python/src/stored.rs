//! A collection of either kind: with numbers as ids, which the database gives, or with texts of the caller's.

use pyo3::{
    IntoPyObject,
    prelude::*,
    types::{PyBool, PyInt, PyString},
};

use crate::{errors::programming, text::utf8};

/// A collection of the library.
pub(crate) enum Stored {
    Numbered(remora::Collection),
    Keyed(remora::Collection<String>),
}

/// Where the documents of a call are.
pub(crate) enum DocumentPlace<'c> {
    /// In the database: what is written is committed when the call ends.
    Database(Stored),
    /// In the transaction of a connection.
    Transaction(Stored, &'c mut remora::Connection),
}

/// An id of either kind.
#[derive(Clone)]
pub(crate) enum Id {
    Number(i64),
    Text(String),
}

/// A kind of ids: what the library's generic calls need of it here.
pub(crate) trait Kind: remora::DocumentId {
    /// The id, if it is of this kind.
    fn of_id(id: &Id) -> Option<Self>;

    /// The id of this.
    fn into_id(self) -> Id;
}

impl Kind for i64 {
    fn of_id(id: &Id) -> Option<Self> {
        match id {
            Id::Number(number) => Some(*number),
            Id::Text(_) => None,
        }
    }

    fn into_id(self) -> Id {
        Id::Number(self)
    }
}

impl Kind for String {
    fn of_id(id: &Id) -> Option<Self> {
        match id {
            Id::Text(text) => Some(text.clone()),
            Id::Number(_) => None,
        }
    }

    fn into_id(self) -> Id {
        Id::Text(self)
    }
}

impl Id {
    /// The id that a call was given.
    ///
    /// # Errors
    /// `ProgrammingError` if the collection has none of this type.
    pub fn read(from: &Bound<'_, PyAny>, is_keyed: bool) -> PyResult<Self> {
        match Self::find(from, is_keyed)? {
            Some(id) => Ok(id),
            None => {
                let (kind, given) = (if is_keyed { "str" } else { "int" }, from.get_type().name()?);
                Err(programming(format!("the ids of this collection are {kind}, not {given}")))
            }
        }
    }

    /// The id; `None` if the collection can have none like it.
    pub fn find(from: &Bound<'_, PyAny>, is_keyed: bool) -> PyResult<Option<Self>> {
        if is_keyed {
            let Ok(text) = from.cast::<PyString>() else { return Ok(None) };
            return Ok(Some(Self::Text(utf8(text)?.into_owned())));
        }
        if !from.is_instance_of::<PyInt>() || from.is_instance_of::<PyBool>() {
            return Ok(None);
        }
        // An integer beyond 64 bits is none.
        Ok(from.extract().ok().map(Self::Number))
    }

    /// Python's value of the id.
    pub fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Self::Number(number) => number.into_pyobject(py)?.into_any(),
            Self::Text(text) => PyString::new(py, text).into_any(),
        })
    }
}

/// Evaluates an expression with the collection, of whichever kind it is.
macro_rules! with {
    ($stored:expr, $collection:ident => $work:expr) => {
        match $stored {
            $crate::stored::Stored::Numbered($collection) => $work,
            $crate::stored::Stored::Keyed($collection) => $work,
        }
    };
}

/// Evaluates an expression with the collection and an id of its kind.
macro_rules! with_id {
    ($stored:expr, $given:expr, ($collection:ident, $id:ident) => $work:expr) => {
        match ($stored, $given) {
            ($crate::stored::Stored::Numbered($collection), $crate::stored::Id::Number($id)) => {
                let $id = *$id;
                $work
            }
            ($crate::stored::Stored::Keyed($collection), $crate::stored::Id::Text($id)) => {
                let $id = $id.as_str();
                $work
            }
            // Ids are read as those of the collection's kind.
            _ => Err(remora::Error::Request("the id is of another kind".to_owned().into())),
        }
    };
}

/// Evaluates a call that the library has for collections and for documents of a transaction, with an id of the
/// collection's kind.
macro_rules! in_place_with_id {
    ($place:expr, $given:expr, ($documents:ident, $id:ident) => $work:expr) => {
        match $place {
            $crate::stored::DocumentPlace::Database(stored) => {
                $crate::stored::with_id!(&stored, $given, ($documents, $id) => $work)
            }
            $crate::stored::DocumentPlace::Transaction(stored, connection) => {
                $crate::stored::with_id!(&stored, $given, ($documents, $id) => {
                    let mut $documents = connection.documents($documents)?;
                    $work
                })
            }
        }
    };
}

/// Evaluates an expression with the collection and its documents at one moment, with the changes of the transaction.
macro_rules! at_moment {
    ($place:expr, ($collection:ident, $moment:ident) => $work:expr) => {
        match $place {
            $crate::stored::DocumentPlace::Database(stored) => {
                $crate::stored::with!(&stored, $collection => {
                    let $moment = $collection.now();
                    $work
                })
            }
            $crate::stored::DocumentPlace::Transaction(stored, connection) => {
                $crate::stored::with!(&stored, $collection => {
                    let $moment = connection.documents($collection)?.now()?;
                    $work
                })
            }
        }
    };
}

pub(crate) use {at_moment, in_place_with_id, with, with_id};

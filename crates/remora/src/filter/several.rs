//! Several paths in one condition or one index.

use super::Field;

/// Paths into documents that one condition tests, or one index has: a [`Field`], its text, or several of either.
///
/// ```
/// use remora::{Filter, Paths, path};
///
/// let one = Filter::matches("title", "reef");
/// let several = Filter::matches([path(["a.b"]), path(["title"])], "reef");
/// assert_eq!(several, Filter::parse("(`a.b`, title) MATCHES 'reef'")?);
/// assert_eq!(Paths::from(["title", "body"]).fields().len(), 2);
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Paths(Vec<Field>);

impl Paths {
    /// The paths in the order in which they were given.
    pub fn fields(&self) -> &[Field] {
        &self.0
    }

    /// The names of each path.
    pub(crate) fn into_names(self) -> Vec<Vec<String>> {
        self.0.into_iter().map(|field| field.parts).collect()
    }

    /// The paths.
    pub(crate) fn into_fields(self) -> Vec<Field> {
        self.0
    }
}

impl From<Field> for Paths {
    fn from(field: Field) -> Self {
        Self(vec![field])
    }
}

impl From<&str> for Paths {
    fn from(path: &str) -> Self {
        Self(vec![path.into()])
    }
}

impl<F: Into<Field>, const COUNT: usize> From<[F; COUNT]> for Paths {
    fn from(fields: [F; COUNT]) -> Self {
        Self(fields.into_iter().map(Into::into).collect())
    }
}

impl<F: Into<Field>> From<Vec<F>> for Paths {
    fn from(fields: Vec<F>) -> Self {
        Self(fields.into_iter().map(Into::into).collect())
    }
}

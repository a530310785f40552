//! Vectorized kernels for exact numbers, sort keys and members of documents. They give the same
//! values as row-by-row evaluation, several times faster.
//!
//! A kernel returns `None` for an unsupported type or an overflow. The function is then evaluated
//! row by row, so that errors name the row's values.

use std::sync::Arc;

use datafusion::{
    arrow::{
        array::{
            Array, ArrayRef, AsArray, BinaryViewBuilder, Decimal128Array, Int64Array,
            StringViewBuilder, UInt64Array,
        },
        buffer::{NullBuffer, ScalarBuffer},
        datatypes::{DataType, Decimal128Type, Int64Type, UInt64Type},
    },
    common::ScalarValue,
    logical_expr::ColumnarValue,
};
use remora_mysql::Collation;

use super::{
    collation::push_key,
    json::{JSON_PART, Json, Path, checked_member, member},
    types::ExprType,
};
use crate::SqlType;

/// With more bytes of results than this, rows are evaluated one by one, where limits apply.
const MOST_BYTES: usize = 16 << 20;

/// A function call over columns.
pub(super) struct KernelCall<'a> {
    /// The function.
    pub name: &'a str,
    pub args: &'a [ColumnarValue],
    pub types: &'a [ExprType],
    pub rows: usize,
    /// The result type and its Arrow representation.
    pub result: &'a ExprType,
    pub held: &'a DataType,
}

/// Numbers scaled to the result's scale. Entries that are NULL have any value.
struct Numbers {
    values: Vec<i128>,
    nulls: Option<NullBuffer>,
}

impl KernelCall<'_> {
    /// The values of the function, if a kernel supports it.
    pub fn evaluate(&self) -> Option<ArrayRef> {
        match self.name {
            "collation_key" => return self.sort_keys(),
            "json_extract" | "->>" | JSON_PART => return self.members(),
            _ => {}
        }
        let scale = self.result_scale()?;
        let numbers = match (self.name, self.args) {
            ("+", [_, _]) => self.calculated(scale, i128::checked_add)?,
            ("-", [_, _]) => self.calculated(scale, i128::checked_sub)?,
            ("coalesce" | "ifnull", [_, ..]) => self.first_present(scale)?,
            ("convert_to", [_, _]) => self.numbers(0, scale)?,
            _ => return None,
        };
        self.array(numbers)
    }

    /// `collation_key(texts, collation number)`.
    fn sort_keys(&self) -> Option<ArrayRef> {
        let ([ColumnarValue::Array(texts), ColumnarValue::Scalar(number)], Some(kind)) =
            (self.args, self.types.first())
        else {
            return None;
        };
        let ScalarValue::Int64(Some(number)) = number else { return None };
        let collation = Collation(u16::try_from(*number).ok()?);
        let is_plain = kind.is_string() && kind.members.is_none() && kind.kind != SqlType::Json;
        if !is_plain || *self.held != DataType::BinaryView {
            return None;
        }
        let texts = texts.as_string_view_opt()?;
        let mut keys = BinaryViewBuilder::with_capacity(texts.len());
        let (mut key, mut bytes) = (Vec::new(), 0);
        for text in texts {
            let Some(text) = text else {
                keys.append_null();
                continue;
            };
            key.clear();
            push_key(text, collation, &mut key);
            bytes += key.len();
            if bytes > MOST_BYTES {
                return None;
            }
            keys.append_value(&key);
        }
        Some(Arc::new(keys.finish()))
    }

    /// `json_extract(documents, path)`, `documents ->> path` or [`JSON_PART`], for a single path of keys.
    fn members(&self) -> Option<ArrayRef> {
        let ([ColumnarValue::Array(documents), ColumnarValue::Scalar(path)], Some(kind)) =
            (self.args, self.types.first())
        else {
            return None;
        };
        let is_json = kind.kind == SqlType::Json;
        let is_text = !is_json && kind.is_string() && kind.members.is_none();
        if !(is_json || is_text) || *self.held != DataType::Utf8View {
            return None;
        }
        let documents = documents.as_string_view_opt()?;
        let path = Path::parse(path.try_as_str().flatten()?).ok().filter(Path::is_of_keys)?;
        let mut members = StringViewBuilder::with_capacity(documents.len());
        let mut bytes = 0;
        for document in documents {
            let found = match document {
                None => None,
                Some(document) if is_json => member(document, &path.steps),
                // Errors of invalid text are reported by row-by-row evaluation.
                Some(document) => checked_member(document, &path.steps).ok()?,
            };
            let found = found.filter(|found| self.name != JSON_PART || *found != Json::Null);
            let text = found.map(|found| match self.name {
                "->>" => found.into_plain_text(),
                _ => found.text(),
            });
            bytes += text.as_ref().map_or(0, String::len);
            if bytes > MOST_BYTES {
                return None;
            }
            members.append_option(text);
        }
        Some(Arc::new(members.finish()))
    }

    fn result_scale(&self) -> Option<u32> {
        match self.held {
            DataType::Int64 | DataType::UInt64 if is_plain_integer(self.result) => Some(0),
            DataType::Decimal128(_, scale) if self.result.is_decimal() => (*scale).try_into().ok(),
            _ => None,
        }
    }

    /// An argument as numbers of this scale.
    fn numbers(&self, index: usize, scale: u32) -> Option<Numbers> {
        let (arg, kind) = (self.args.get(index)?, self.types.get(index)?);
        if !is_plain_integer(kind) && !kind.is_decimal() {
            return None;
        }
        match arg {
            ColumnarValue::Array(array) => numbers_of(array, scale),
            ColumnarValue::Scalar(scalar) => {
                let one = numbers_of(&scalar.to_array().ok()?, scale)?;
                let value = one.values.first().copied()?;
                let nulls = one.nulls.is_some().then(|| NullBuffer::new_null(self.rows));
                Some(Numbers { values: vec![value; self.rows], nulls })
            }
        }
    }

    fn calculated(&self, scale: u32, operation: fn(i128, i128) -> Option<i128>) -> Option<Numbers> {
        let (a, b) = (self.numbers(0, scale)?, self.numbers(1, scale)?);
        let nulls = NullBuffer::union(a.nulls.as_ref(), b.nulls.as_ref());
        let pairs = a.values.iter().zip(&b.values);
        let values = pairs.map(|(a, b)| operation(*a, *b)).collect::<Option<_>>()?;
        Some(Numbers { values, nulls })
    }

    fn first_present(&self, scale: u32) -> Option<Numbers> {
        let mut found = self.numbers(0, scale)?;
        for index in 1..self.args.len() {
            let other = self.numbers(index, scale)?;
            let Some(nulls) = &found.nulls else { continue };
            for (row, (value, other)) in found.values.iter_mut().zip(&other.values).enumerate() {
                if nulls.is_null(row) {
                    *value = *other;
                }
            }
            found.nulls = other.nulls.map(|other| NullBuffer::new(nulls.inner() | other.inner()));
        }
        Some(found)
    }

    /// The numbers as an array of the result's type; `None` if one does not fit.
    fn array(&self, numbers: Numbers) -> Option<ArrayRef> {
        let Numbers { values, nulls } = numbers;
        if let DataType::Decimal128(..) = self.held {
            let array = Decimal128Array::try_new(ScalarBuffer::from(values), nulls).ok()?;
            return Some(Arc::new(array.with_data_type(self.held.clone())));
        }
        let absent = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        let values = values.into_iter().enumerate();
        if *self.held == DataType::UInt64 {
            let values = values
                .map(|(row, value)| if absent(row) { Some(0) } else { value.try_into().ok() });
            let values = values.collect::<Option<Vec<u64>>>()?;
            return Some(Arc::new(UInt64Array::try_new(values.into(), nulls).ok()?));
        }
        let values =
            values.map(|(row, value)| if absent(row) { Some(0) } else { value.try_into().ok() });
        let values = values.collect::<Option<Vec<i64>>>()?;
        Some(Arc::new(Int64Array::try_new(values.into(), nulls).ok()?))
    }
}

/// Whether it is an integer type other than YEAR and BIT.
fn is_plain_integer(kind: &ExprType) -> bool {
    kind.is_integer() && !matches!(kind.kind, SqlType::Year | SqlType::Bit(_))
}

fn numbers_of(array: &ArrayRef, scale: u32) -> Option<Numbers> {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
    let own_scale = match array.data_type() {
        DataType::Decimal128(_, own) => u32::try_from(*own).ok()?,
        _ => 0,
    };
    let factor = 10_i128.checked_pow(scale.checked_sub(own_scale)?)?;
    let values: Option<Vec<i128>> = match array.data_type() {
        DataType::Boolean => {
            let truths = array.as_boolean().values().iter();
            Some(truths.map(|truth| if truth { factor } else { 0 }).collect())
        }
        DataType::Int64 => {
            let values = array.as_primitive::<Int64Type>().values().iter();
            values.map(|value| factor.checked_mul((*value).into())).collect()
        }
        DataType::UInt64 => {
            let values = array.as_primitive::<UInt64Type>().values().iter();
            values.map(|value| factor.checked_mul((*value).into())).collect()
        }
        DataType::Decimal128(..) => {
            let values = array.as_primitive::<Decimal128Type>().values();
            match factor {
                1 => Some(values.to_vec()),
                _ => values.iter().map(|value| factor.checked_mul(*value)).collect(),
            }
        }
        _ => None,
    };
    Some(Numbers { values: values?, nulls })
}

#[cfg(test)]
mod tests {
    use datafusion::{
        arrow::{array::StringViewArray, datatypes::Field},
        common::{ScalarValue, config::ConfigOptions},
        logical_expr::{ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF},
    };

    use super::*;
    use crate::meaning::{function::Dialect, library};

    /// The result of the kernel for whole columns, and row by row: a batch of one row does not use
    /// a kernel.
    fn both(name: &str, columns: &[(ArrayRef, ExprType)]) -> Option<(ArrayRef, Vec<ArrayRef>)> {
        let udf = library::function(name, Dialect::default()).unwrap();
        let whole = run(&udf, columns)?;
        let rows = (0..whole.len()).map(|row| {
            let scalars: Vec<(ColumnarValue, ExprType)> = columns
                .iter()
                .map(|(column, kind)| {
                    let scalar = ScalarValue::try_from_array(column, row).unwrap();
                    (ColumnarValue::Scalar(scalar), kind.clone())
                })
                .collect();
            invoke(&udf, &scalars, 1)
        });
        Some((whole, rows.collect::<Option<_>>()?))
    }

    fn run(udf: &ScalarUDF, columns: &[(ArrayRef, ExprType)]) -> Option<ArrayRef> {
        let args = columns.iter();
        let args: Vec<_> = args
            .map(|(array, kind)| (ColumnarValue::Array(Arc::clone(array)), kind.clone()))
            .collect();
        invoke(udf, &args, columns[0].0.len())
    }

    fn invoke(
        udf: &ScalarUDF,
        args: &[(ColumnarValue, ExprType)],
        rows: usize,
    ) -> Option<ArrayRef> {
        let fields: Vec<Arc<Field>> = args
            .iter()
            .map(|(value, kind)| Arc::new(kind.field_of("x", value.data_type())))
            .collect();
        let scalars = vec![None; args.len()];
        let return_field = udf
            .return_field_from_args(ReturnFieldArgs {
                arg_fields: &fields,
                scalar_arguments: &scalars,
            })
            .unwrap();
        let call = ScalarFunctionArgs {
            args: args.iter().map(|(value, _)| value.clone()).collect(),
            arg_fields: fields,
            number_rows: rows,
            return_field,
            config_options: Arc::new(ConfigOptions::default()),
        };
        udf.invoke_with_args(call).ok()?.into_array(rows).ok()
    }

    fn integers(values: &[Option<i64>]) -> (ArrayRef, ExprType) {
        (Arc::new(Int64Array::from(values.to_vec())), ExprType::int(20))
    }

    fn unsigned(values: &[Option<u64>]) -> (ArrayRef, ExprType) {
        (Arc::new(UInt64Array::from(values.to_vec())), ExprType::uint(20))
    }

    fn decimals(values: &[Option<i128>], digits: u8, scale: u8) -> (ArrayRef, ExprType) {
        let array = Decimal128Array::from(values.to_vec());
        let array = array.with_precision_and_scale(digits, scale as i8).unwrap();
        (Arc::new(array), ExprType::decimal(digits.into(), scale.into()))
    }

    #[test]
    fn columns_give_what_rows_give() {
        let a = integers(&[Some(5), None, Some(-7), Some(i64::MAX - 9), Some(0), None]);
        let b = integers(&[Some(3), Some(4), None, Some(9), Some(-1), None]);
        let c = decimals(&[Some(1_050), Some(-2), None, Some(10_000), None, None], 8, 2);
        let d = decimals(&[Some(7), None, Some(-1), Some(5), Some(12_345), None], 10, 4);
        let e = unsigned(&[Some(3), Some(8), None, Some(0), Some(u64::MAX), None]);
        for name in ["+", "-", "coalesce", "ifnull"] {
            for (x, y) in [(&a, &b), (&a, &c), (&c, &d), (&d, &a), (&c, &c), (&e, &c), (&a, &e)] {
                let Some((whole, rows)) = both(name, &[x.clone(), y.clone()]) else { continue };
                for (row, one) in rows.iter().enumerate() {
                    assert_eq!(&whole.slice(row, 1), one, "{name}, row {row}");
                }
            }
        }
    }

    #[test]
    fn columns_of_documents_give_what_rows_give() {
        let documents = [
            Some(r#"{"a": "x", "b": {"c": [1, "y"]}}"#),
            Some(r#"{"a": "\"q\" \u00e4", "b": 7}"#),
            Some(r#"{"b": {"c": null}}"#),
            Some(r#"[{"a": 1}]"#),
            Some("1.50"),
            None,
            Some(r#"{"a": true, "A": 1, "b": {"c": "z"}}"#),
        ];
        let array: ArrayRef = Arc::new(StringViewArray::from(documents.to_vec()));
        let text = |path: &str| {
            let kind = ExprType::text(9, Collation::UTF8MB4_0900_AI_CI);
            (ColumnarValue::Scalar(ScalarValue::Utf8View(Some(path.to_owned()))), kind)
        };
        let names = ["json_extract", "->>", JSON_PART].map(|name| (name, ExprType::json()));
        let of_texts = names.clone().map(|(name, _)| (name, text("").1));
        for (name, kind) in names.into_iter().chain(of_texts) {
            let udf = library::function(name, Dialect::default()).unwrap();
            for path in ["$", "$.a", "$.b", "$.b.c", "$.b.c[1]", "$.*"] {
                let column = (ColumnarValue::Array(Arc::clone(&array)), kind.clone());
                let whole = invoke(&udf, &[column, text(path)], array.len()).unwrap();
                for row in 0..array.len() {
                    let one = ScalarValue::try_from_array(&array, row).unwrap();
                    let one = (ColumnarValue::Scalar(one), kind.clone());
                    let one = invoke(&udf, &[one, text(path)], 1).unwrap();
                    assert_eq!(&whole.slice(row, 1), &one, "{name} {path}, row {row}");
                }
            }
        }
    }

    #[test]
    fn what_has_no_place_is_an_error_still() {
        let greatest = integers(&[Some(1), Some(i64::MAX)]);
        let udf = library::function("+", Dialect::default()).unwrap();
        assert!(run(&udf, &[greatest.clone(), greatest.clone()]).is_none());
        let absent = integers(&[None, None]);
        assert_eq!(run(&udf, &[greatest, absent]).unwrap().null_count(), 2);
    }
}

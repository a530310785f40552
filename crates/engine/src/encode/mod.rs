//! Values as bytes: keys, column cells, stored rows and typed literals.

mod base64;
mod cell;
mod document;
mod fit;
mod joint;
mod key;
mod layout;
mod literal;
mod path;
mod row;
mod row_paths;
mod schema;
mod sent_rows;
mod walk;

pub use base64::{from_url_base64, to_url_base64};
pub(crate) use cell::{
    column_kind, decimal_of_cell, decode_cell, encode_cell, float_of_ordinal, int_of_ordinal,
    unpack_date, unpack_date_time,
};
pub use document::loses_digits;
pub use fit::fitted_row;
pub(crate) use fit::{FittedRow, fit, fit_in_place, fit_row};
pub(crate) use joint::{
    TOO_MANY, are_scalars, first_parts, joint_key, joint_ranges, range_of_equal, range_of_parts,
    shown_parts, turned,
};
pub use key::key_bytes;
pub(crate) use key::{append_key, decode_key, encode_key};
pub(crate) use layout::{History, RowFormat, layout_of};
pub(crate) use literal::parse_literal;
pub(crate) use path::{
    AFTER_SCALARS, FIRST_SCALAR, KeyRange, ScalarKind, has_value_at, is_scalar, range_of_kind,
    ranges, scalar_of, shown, sorted_key,
};
pub(crate) use row::{decode_row, encode_row};
pub(crate) use row_paths::path_values;
pub(crate) use schema::{decode_schema, encode_schema};
pub use sent_rows::{decode_rows, encode_rows};
pub use walk::{JsonNode, element_place, walk_path};

#[cfg(test)]
pub(crate) mod strategies;

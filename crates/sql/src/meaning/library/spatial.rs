//! Geometry functions, as far as they are supported.

use remora_mysql::{Collation, ErrorCode, messages};

use super::super::{
    call::{Call, TypeContext},
    function::Definition,
    geometry,
    types::ExprType,
    value::SqlValue,
};
use crate::{Error, Result, SqlType};

const MAX_SRID: i128 = u32::MAX as i128;

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("st_geomfromtext", 1, 2, geometry_type, |call, args| {
        of_text(call, args, "st_geomfromtext", None)
    }),
    Definition::new("st_pointfromtext", 1, 2, geometry_type, |call, args| {
        of_text(call, args, "st_pointfromtext", Some("POINT"))
    }),
    Definition::new("st_linefromtext", 1, 2, geometry_type, |call, args| {
        of_text(call, args, "st_linefromtext", Some("LINESTRING"))
    }),
    Definition::new("st_polyfromtext", 1, 2, geometry_type, |call, args| {
        of_text(call, args, "st_polyfromtext", Some("POLYGON"))
    }),
    Definition::new("st_geomfromwkb", 1, 2, geometry_type, of_binary),
    Definition::new("point", 2, 2, geometry_type, point),
    Definition::new("st_astext", 1, 1, long_text, as_text),
    Definition::new("st_asbinary", 1, 1, long_bytes, as_binary),
    Definition::new("st_geometrytype", 1, 1, long_text, kind),
    Definition::new("st_srid", 1, 1, number_type, srid),
    Definition::new("st_x", 1, 1, double_type, |_, args| coordinate(args, "st_x", |(x, _)| x)),
    Definition::new("st_distance_sphere", 2, 3, double_type, distance_sphere),
    Definition::new("st_y", 1, 1, double_type, |_, args| coordinate(args, "st_y", |(_, y)| y)),
];

/// The radius of the sphere that MySQL uses without a reference system.
const EARTH_RADIUS_METRES: f64 = 6_370_986.0;
/// The mean radius of the WGS 84 ellipsoid, (2a + b) / 3.
const MEAN_RADIUS_METRES: f64 = 6_371_008.771_415_059;

fn geometry_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::column(SqlType::Geometry, false, u32::MAX, Collation::BINARY))
}

fn long_text(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::text(u32::MAX, typing.collation))
}

fn long_bytes(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::binary(u32::MAX))
}

fn number_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::uint(10))
}

fn double_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::double())
}

/// 3037: the geometry is invalid.
fn invalid(function: &str) -> Error {
    let message = format!("Invalid GIS data provided to function {function}.");
    Error::new(ErrorCode::InvalidGeometry, message)
}

/// The reference system in the arguments, or 0.
fn srid_of(call: &Call<'_>, args: &[SqlValue<'_>], function: &str) -> Result<u32> {
    let Some(value) = args.get(1) else { return Ok(0) };
    let number = value.integer(call);
    if (0..=MAX_SRID).contains(&number) {
        return Ok(u32::try_from(number).unwrap_or(0));
    }
    Err(Error::new(ErrorCode::OutOfRange, messages::value_out_of_range("SRID", function)))
}

fn of_text<'a>(
    call: &Call<'_>,
    args: &[SqlValue<'a>],
    function: &str,
    wanted: Option<&str>,
) -> Result<SqlValue<'a>> {
    if args.iter().any(SqlValue::is_null) {
        return Ok(SqlValue::Null);
    }
    let text = args.first().and_then(SqlValue::string).unwrap_or_default();
    let made = geometry::of_text(&text, srid_of(call, args, function)?);
    let made = made.filter(|made| wanted.is_none_or(|name| geometry::name(made) == Some(name)));
    made.map(SqlValue::bytes).ok_or_else(|| invalid(function))
}

fn of_binary<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    if args.iter().any(SqlValue::is_null) {
        return Ok(SqlValue::Null);
    }
    let bytes = args.first().and_then(SqlValue::octets).unwrap_or_default();
    let made = geometry::of_binary(&bytes, srid_of(call, args, "st_geomfromwkb")?);
    made.map(SqlValue::bytes).ok_or_else(|| invalid("st_geomfromwkb"))
}

fn point<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [x, y] = args else { return Ok(SqlValue::Null) };
    if x.is_null() || y.is_null() {
        return Ok(SqlValue::Null);
    }
    Ok(SqlValue::bytes(geometry::point(x.double(call), y.double(call))))
}

/// Applies a function to a geometry; NULL for NULL.
fn of_geometry<'a>(
    args: &[SqlValue<'a>],
    function: &str,
    make: impl FnOnce(&[u8]) -> Option<SqlValue<'a>>,
) -> Result<SqlValue<'a>> {
    let Some(bytes) = args.first().and_then(SqlValue::octets) else { return Ok(SqlValue::Null) };
    make(&bytes).ok_or_else(|| invalid(function))
}

fn as_text<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    of_geometry(args, "st_astext", |value| geometry::to_text(value).map(SqlValue::text))
}

fn as_binary<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    of_geometry(args, "st_asbinary", |value| {
        geometry::to_text(value)?;
        geometry::parts(value).map(|(_, shape)| SqlValue::bytes(shape))
    })
}

fn kind<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    of_geometry(args, "st_geometrytype", |value| geometry::name(value).map(SqlValue::text))
}

fn srid<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    of_geometry(args, "st_srid", |value| {
        geometry::to_text(value)?;
        geometry::parts(value).map(|(srid, _)| SqlValue::Uint(u64::from(srid)))
    })
}

fn coordinate<'a>(
    args: &[SqlValue<'a>],
    function: &str,
    pick: fn((f64, f64)) -> f64,
) -> Result<SqlValue<'a>> {
    let Some(bytes) = args.first().and_then(SqlValue::octets) else { return Ok(SqlValue::Null) };
    let name = geometry::name(&bytes).ok_or_else(|| invalid(function))?;
    match geometry::coordinates(&bytes) {
        Some(position) => Ok(SqlValue::Double(pick(position))),
        None => {
            let message =
                format!("POINT value is a geometry of unexpected type {name} in {function}.");
            Err(Error::new(ErrorCode::UnexpectedGeometry, message))
        }
    }
}

/// The distance in metres on a sphere between two points of longitude and latitude in degrees, by
/// the haversine formula.
fn distance_sphere<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    const NAME: &str = "st_distance_sphere";
    let [from, to, rest @ ..] = args else { return Ok(SqlValue::Null) };
    let (Some(from), Some(to)) = (from.octets(), to.octets()) else { return Ok(SqlValue::Null) };
    let invalid = || invalid(NAME);
    let (from_srid, _) = geometry::parts(&from).ok_or_else(invalid)?;
    let (to_srid, _) = geometry::parts(&to).ok_or_else(invalid)?;
    let names =
        (geometry::name(&from).ok_or_else(invalid)?, geometry::name(&to).ok_or_else(invalid)?);
    if from_srid != to_srid {
        let message = format!(
            "Binary geometry function {NAME} given two geometries of different srids: {from_srid} and \
             {to_srid}, which should have been identical."
        );
        return Err(Error::new(ErrorCode::DifferentSrids, message));
    }
    let points = (geometry::coordinates(&from), geometry::coordinates(&to));
    let (Some(from), Some(to)) = points else {
        return Err(Error::unsupported(format!("{NAME}({}, {})", names.0, names.1)));
    };
    let radius = match rest.first() {
        None if from_srid == 0 => EARTH_RADIUS_METRES,
        None => MEAN_RADIUS_METRES,
        Some(SqlValue::Null) => return Ok(SqlValue::Null),
        Some(radius) => radius.double(call),
    };
    if radius <= 0.0 {
        let message = format!(
            "Invalid radius provided to function {NAME}: Radius must be greater than zero."
        );
        return Err(Error::new(ErrorCode::NonPositiveRadius, message));
    }
    check_position(from, NAME)?;
    check_position(to, NAME)?;
    let half_sine = |angle: f64| (angle / 2.0).sin().powi(2);
    let (from_latitude, to_latitude) = (from.1.to_radians(), to.1.to_radians());
    let longitudes = to.0.to_radians() - from.0.to_radians();
    let square = half_sine(to_latitude - from_latitude)
        + from_latitude.cos() * to_latitude.cos() * half_sine(longitudes);
    Ok(SqlValue::Double(2.0 * square.sqrt().asin() * radius))
}

/// 3616 or 3617 if a longitude or latitude is out of range.
fn check_position((longitude, latitude): (f64, f64), function: &str) -> Result<()> {
    if !(longitude > -180.0 && longitude <= 180.0) {
        let message = format!(
            "Longitude {longitude:.6} is out of range in function {function}. It must be within \
             (-180.000000, 180.000000]."
        );
        return Err(Error::new(ErrorCode::LongitudeOutOfRange, message));
    }
    if !(-90.0..=90.0).contains(&latitude) {
        let message = format!(
            "Latitude {latitude:.6} is out of range in function {function}. It must be within \
             [-90.000000, 90.000000]."
        );
        return Err(Error::new(ErrorCode::LatitudeOutOfRange, message));
    }
    Ok(())
}

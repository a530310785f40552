//! The errors of MySQL and MariaDB that we send or receive, by number.

macro_rules! error_codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal $state:literal,)*) => {
        /// An error's number and SQLSTATE: `mysqld_error.h`, and the Error Message Reference of the
        /// MySQL manual.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum ErrorCode { $($(#[$doc])* $name = $number,)* }

        impl ErrorCode {
            /// The error of a number, if it is one of these.
            #[must_use]
            pub const fn from_number(number: u16) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// MySQL's number.
            #[must_use]
            pub const fn number(self) -> u16 {
                self as u16
            }

            /// The five characters of SQLSTATE.
            #[must_use]
            pub const fn state(self) -> &'static str {
                match self { $(Self::$name => $state,)* }
            }
        }
    };
}

error_codes! {
    /// A warning about a search or about stored queries, as Sphinx sends it.
    SearchWarning = 1000 "HY000",
    /// A database of that name exists.
    DatabaseExists = 1007 "HY000",
    /// The database to be dropped is not known.
    CannotDropDatabase = 1008 "HY000",
    /// The disk is full.
    DiskFull = 1021 "HY000",
    /// A statement would take more memory than it may.
    OutOfMemory = 1038 "HY001",
    /// Too many connections.
    TooManyConnections = 1040 "08004",
    /// Memory for an operation could not be had.
    OutOfResources = 1041 "HY000",
    /// A login packet does not follow the protocol.
    BadHandshake = 1043 "08S01",
    /// The user may not use the database.
    DatabaseAccessDenied = 1044 "42000",
    /// Wrong user or password.
    AccessDenied = 1045 "28000",
    /// No database is selected.
    NoDatabase = 1046 "3D000",
    /// An unknown command of the protocol.
    UnknownCommand = 1047 "08S01",
    /// NULL for a column that is NOT NULL.
    ColumnCannotBeNull = 1048 "23000",
    /// The database is not known.
    UnknownDatabase = 1049 "42000",
    /// The table exists.
    TableExists = 1050 "42S01",
    /// The table to be dropped is not known.
    UnknownTable = 1051 "42S02",
    /// A column's name fits several columns.
    AmbiguousColumn = 1052 "23000",
    /// The server is stopping.
    ServerShutdown = 1053 "08S01",
    /// The column is not known.
    UnknownColumn = 1054 "42S22",
    /// A column is neither grouped nor aggregated.
    NotInGroupBy = 1055 "42000",
    /// GROUP BY an aggregate.
    WrongGroup = 1056 "42000",
    /// Two columns of one name.
    DuplicateColumn = 1060 "42S21",
    /// Two keys of one name.
    DuplicateKeyName = 1061 "42000",
    /// A row with the same value of a unique key exists.
    DuplicateKey = 1062 "23000",
    /// An attribute that columns of this type cannot have.
    WrongColumnSpecifier = 1063 "42000",
    /// A syntax error.
    ParseError = 1064 "42000",
    /// An empty statement.
    EmptyQuery = 1065 "42000",
    /// Two tables or aliases of one name in a statement.
    NonUniqueTable = 1066 "42000",
    /// A default that is not a value of the column's type.
    InvalidDefault = 1067 "42000",
    /// A second primary key.
    MultiplePrimaryKeys = 1068 "42000",
    /// A key over a column that does not exist.
    KeyColumnMissing = 1072 "42000",
    /// A column whose length is greater than its type permits.
    TooBigColumn = 1074 "42000",
    /// AUTO_INCREMENT on a column without a key, or on two columns.
    WrongAutoIncrement = 1075 "42000",
    /// A table would have no columns left.
    CannotRemoveAllFields = 1090 "42000",
    /// A column or key to be dropped does not exist.
    CannotDropField = 1091 "42000",
    /// A subquery reads the table that its statement changes.
    ReadsItsTarget = 1093 "HY000",
    /// No connection has this number.
    UnknownThread = 1094 "HY000",
    /// The connection to be killed belongs to another user.
    KillDenied = 1095 "HY000",
    /// `*` without a table.
    NoTablesUsed = 1096 "HY000",
    /// A SET with too many members.
    TooBigSet = 1097 "HY000",
    /// A default of a BLOB or TEXT column.
    BlobDefault = 1101 "42000",
    /// An invalid name of a database.
    WrongDatabaseName = 1102 "42000",
    /// An invalid name of a table.
    WrongTableName = 1103 "42000",
    /// Any error without a code of its own.
    Unknown = 1105 "HY000",
    /// A name is qualified with a table that the statement does not have.
    UnknownTableInDelete = 1109 "42S02",
    /// A column that is set twice.
    FieldSpecifiedTwice = 1110 "42000",
    /// An aggregate in a clause where none is allowed.
    InvalidGroupFunction = 1111 "HY000",
    /// There is no room for more rows in the table.
    TableFull = 1114 "HY000",
    /// The character set is not known.
    UnknownCharset = 1115 "42000",
    /// A join of more tables than MySQL's limit.
    TooManyTables = 1116 "HY000",
    /// More columns than a SELECT or a table may have.
    TooManyColumns = 1117 "HY000",
    /// The client's host is blocked after too many failed logins.
    HostBlocked = 1129 "HY000",
    /// No user may log in from the client's host.
    HostNotAllowed = 1130 "HY000",
    /// The number of values differs from the number of columns.
    ValueCount = 1136 "21S01",
    /// NULL where a value is needed.
    InvalidUseOfNull = 1138 "22004",
    /// Aggregates beside plain columns, without GROUP BY.
    MixedGroup = 1140 "42000",
    /// The user may not run such a statement on the table.
    TableAccessDenied = 1142 "42000",
    /// The user may not read or write the column.
    ColumnAccessDenied = 1143 "42000",
    /// The table is not known.
    NoSuchTable = 1146 "42S02",
    /// A packet larger than the limit.
    PacketTooLarge = 1153 "08S01",
    /// A packet whose sequence number is not the next one.
    PacketsOutOfOrder = 1156 "08S01",
    /// A compressed packet that cannot be decompressed.
    CannotUncompress = 1157 "08S01",
    /// An invalid name of a column.
    WrongColumnName = 1166 "42000",
    /// A key over a BLOB or TEXT column without a length.
    BlobKeyWithoutLength = 1170 "42000",
    /// A column of a primary key that allows NULL.
    PrimaryKeyNull = 1171 "42000",
    /// SELECT INTO with several rows.
    TooManyRows = 1172 "42000",
    /// A key that a statement names does not exist.
    KeyMissing = 1176 "42000",
    /// No text index covers the columns of MATCH.
    NoFulltextIndex = 1191 "HY000",
    /// An unknown system variable.
    UnknownVariable = 1193 "HY000",
    /// A transaction changes more than the limit.
    TransactionTooLarge = 1197 "HY000",
    /// The user has too many connections.
    TooManyUserConnections = 1203 "42000",
    /// A lock was not granted in time.
    LockWaitTimeout = 1205 "HY000",
    /// Invalid arguments of a function or statement.
    WrongArguments = 1210 "HY000",
    /// The transaction conflicts with another one and was rolled back; the client may repeat it.
    Deadlock = 1213 "40001",
    /// A foreign key has no such row in the parent table. An old number, without the key's name.
    NoReferencedRowOld = 1216 "23000",
    /// Rows of another table refer to the row. An old number, without the key's name.
    RowIsReferencedOld = 1217 "23000",
    /// Two clauses that cannot be combined.
    WrongUsage = 1221 "HY000",
    /// SELECTs of a UNION with different numbers of columns.
    UnionColumns = 1222 "21000",
    /// The user has reached one of its resource limits.
    UserLimitReached = 1226 "42000",
    /// The user lacks a privilege.
    SpecificAccessDenied = 1227 "42000",
    /// A variable that only sessions have cannot be set globally.
    LocalVariable = 1228 "HY000",
    /// A variable that is only global cannot be set for the session.
    GlobalVariable = 1229 "HY000",
    /// A value that is invalid for the variable.
    WrongValueForVariable = 1231 "42000",
    /// A value of the wrong type for the variable.
    WrongTypeForVariable = 1232 "42000",
    /// A feature that this version does not support.
    NotSupported = 1235 "42000",
    /// The binlog cannot be sent from the requested position.
    FatalReadingBinlog = 1236 "HY000",
    /// A read-only variable.
    ReadOnlyVariable = 1238 "HY000",
    /// A subquery or row whose number of columns differs from the expected one.
    OperandColumns = 1241 "21000",
    /// A scalar subquery with several rows.
    SubqueryRows = 1242 "21000",
    /// An unknown prepared statement.
    UnknownStatement = 1243 "HY000",
    /// A derived table without a name.
    DerivedWithoutAlias = 1248 "42000",
    /// A client that speaks an older protocol.
    OldClient = 1251 "08004",
    /// A collation of another character set than the text's.
    CollationCharsetMismatch = 1253 "42000",
    /// UNCOMPRESS: the recorded length exceeds the limit for texts.
    UncompressTooLarge = 1256 "HY000",
    /// UNCOMPRESS: the data is longer than the recorded length.
    UncompressRoom = 1258 "HY000",
    /// UNCOMPRESS: the argument is not compressed data.
    UncompressData = 1259 "HY000",
    /// A result of GROUP_CONCAT was truncated.
    CutByGroupConcat = 1260 "HY000",
    /// LOAD DATA: a line has fewer values than columns.
    TooFewFields = 1261 "01000",
    /// LOAD DATA: a line has more values than columns.
    TooManyFields = 1262 "01000",
    /// A number outside the range of its column.
    OutOfRange = 1264 "22003",
    /// A value was truncated to fit its column.
    DataTruncated = 1265 "01000",
    /// An operation on texts whose collations cannot be combined.
    CollationMix = 1267 "HY000",
    /// Collations of several operands cannot be mixed.
    CollationsMix = 1271 "HY000",
    /// The collation is not known.
    UnknownCollation = 1273 "HY000",
    /// A text index over a column that does not hold text.
    BadFulltextColumn = 1283 "HY000",
    /// The storage engine is not known.
    UnknownEngine = 1286 "42000",
    /// Deprecated syntax.
    DeprecatedSyntax = 1287 "HY000",
    /// A table or view that is not updatable.
    NotUpdatable = 1288 "HY000",
    /// An option of the server forbids the statement, such as `--read-only`.
    OptionPreventsStatement = 1290 "HY000",
    /// An ENUM or SET with the same label twice.
    DuplicateLabel = 1291 "HY000",
    /// A value that is not, or only in its beginning, of the type it is converted to.
    TruncatedValue = 1292 "22007",
    /// ON UPDATE on a column that is neither TIMESTAMP nor DATETIME.
    InvalidOnUpdate = 1294 "HY000",
    /// A statement that cannot be prepared.
    NotPrepared = 1295 "HY000",
    /// The time zone is not known.
    UnknownTimeZone = 1298 "HY000",
    /// Bytes that are invalid in their character set.
    InvalidCharacters = 1300 "HY000",
    /// A function's result exceeds `max_allowed_packet`.
    FunctionResultTooLong = 1301 "HY000",
    /// A function, procedure or savepoint does not exist.
    DoesNotExist = 1305 "42000",
    /// Several result sets for a client that only takes one.
    ManyResults = 1312 "0A000",
    /// The statement was killed.
    Interrupted = 1317 "70100",
    /// SELECT INTO without a row.
    NoData = 1329 "02000",
    /// The named object is not a table, or not a view.
    WrongObject = 1347 "HY000",
    /// A clause that a view cannot have.
    ViewClause = 1350 "HY000",
    /// A variable or parameter in a view.
    ViewVariable = 1351 "HY000",
    /// A temporary table in a view.
    ViewTemporaryTable = 1352 "HY000",
    /// A derived table or view whose list of names is not as long as its list of columns.
    ViewColumns = 1353 "HY000",
    /// A view refers to tables or columns that do not exist or that its user may not read.
    ViewInvalid = 1356 "HY000",
    /// A column without a default is given no value.
    NoDefault = 1364 "HY000",
    /// A division by zero in strict mode.
    DivisionByZero = 1365 "22012",
    /// A value that is not of its column's type.
    WrongValueForColumn = 1366 "HY000",
    /// A literal that cannot be a value of its type.
    IllegalValueForType = 1367 "22007",
    /// This server has no binary log.
    NoBinaryLog = 1381 "HY000",
    /// A prepared statement with more parameters than the protocol can count.
    TooManyParameters = 1390 "HY000",
    /// A text that is longer than its column permits.
    DataTooLong = 1406 "22001",
    /// A text that a function cannot parse.
    WrongValueForFunction = 1411 "HY000",
    /// A value that is not a geometry of the column's type.
    NoGeometry = 1416 "22003",
    /// A fetch from a prepared statement without an open cursor.
    NoCursor = 1421 "HY000",
    /// A scale greater than the maximum.
    TooBigScale = 1425 "42000",
    /// A precision greater than the maximum.
    TooBigPrecision = 1426 "42000",
    /// A scale greater than the precision.
    ScaleAbovePrecision = 1427 "42000",
    /// The server that holds the rows of a remote table failed.
    ForeignQuery = 1430 "HY000",
    /// A date outside the supported range.
    DateOverflow = 1441 "22008",
    /// RENAME of a view to another database.
    SchemaChange = 1450 "HY000",
    /// Rows of another table refer to the row.
    RowIsReferenced = 1451 "23000",
    /// A foreign key has no such row in the parent table.
    NoReferencedRow = 1452 "23000",
    /// Too many prepared statements.
    TooManyStatements = 1461 "42000",
    /// A view that refers to itself.
    ViewRecursion = 1462 "HY000",
    /// The AUTO_INCREMENT column has reached its largest value.
    AutoIncrementExhausted = 1467 "HY000",
    /// A table or view into which no rows can be inserted.
    NotInsertable = 1471 "HY000",
    /// Subqueries nested too deeply.
    NestingTooDeep = 1473 "HY000",
    /// A literal that is not a value of its type.
    IncorrectValue = 1525 "HY000",
    /// An index cannot be dropped because a foreign key needs it.
    IndexNeededByForeignKey = 1553 "HY000",
    /// A change that a foreign key passes on would make a duplicate.
    ForeignDuplicateKey = 1557 "23000",
    /// A statement that is not allowed within a transaction.
    TransactionOpen = 1568 "25001",
    /// A wrong number of arguments of a function.
    WrongParameterCount = 1582 "42000",
    /// A duplicate, reported with the key's name.
    DuplicateKeyNamed = 1586 "23000",
    /// An option that has no effect.
    OptionIgnored = 1618 "HY000",
    /// A variable whose session value is read-only.
    SessionVariable = 1621 "HY000",
    /// The locale is not known.
    UnknownLocale = 1649 "HY000",
    /// A result outside the range of its type.
    NumberOutOfRange = 1690 "22003",
    /// A rollback cannot restore temporary tables that were dropped.
    DroppedTemporary = 1752 "HY000",
    /// A text that is not a GTID set.
    MalformedGtidSet = 1772 "HY000",
    /// A write in a read-only transaction.
    ReadOnlyTransaction = 1792 "25006",
    /// YEAR(2), which is no longer supported.
    InvalidYearWidth = 1818 "HY000",
    /// The password has expired and must be changed before anything else.
    PasswordExpired = 1820 "HY000",
    /// Two foreign keys of one name.
    DuplicateForeignKey = 1826 "HY000",
    /// A column cannot be dropped because a foreign key needs it.
    ColumnNeededByForeignKey = 1828 "HY000",
    /// A key that duplicates another one.
    DuplicateIndex = 1831 "HY000",
    /// A packet that is too short for its command.
    MalformedPacket = 1835 "HY000",
    /// The password has expired and the client cannot change it.
    PasswordExpiredAtLogin = 1862 "HY000",
    /// An initialization vector that is too short.
    ShortVector = 1882 "HY000",
    /// MariaDB: the connection was killed.
    ConnectionKilled = 1927 "70100",
    /// A logarithm of zero or of a negative number.
    InvalidLogarithm = 3020 "2201E",
    /// The statement exceeded its time limit.
    QueryTimeout = 3024 "HY000",
    /// Two geometries of different spatial reference systems.
    DifferentSrids = 3033 "HY000",
    /// A text or bytes that do not encode a geometry.
    InvalidGeometry = 3037 "22023",
    /// An invalid name of a user lock.
    UserLockName = 3057 "42000",
    /// Waiting for a user lock would be a deadlock.
    UserLockDeadlock = 3058 "HY000",
    /// DISTINCT rows ordered by an expression that is not selected.
    DistinctOrder = 3065 "HY000",
    /// The expression of a generated column uses something not allowed there, such as a subquery.
    GeneratedQuery = 3102 "HY000",
    /// A value for a generated column.
    GeneratedColumnValue = 3105 "HY000",
    /// What generated columns cannot have or do.
    GeneratedUnsupported = 3106 "HY000",
    /// A generated column whose expression names itself or a later one.
    GeneratedOrder = 3107 "HY000",
    /// A column cannot be dropped because a generated column needs it.
    GeneratedNeedsColumn = 3108 "HY000",
    /// A generated column whose expression names the AUTO_INCREMENT column.
    GeneratedCounter = 3109 "HY000",
    /// The account is locked.
    AccountLocked = 3118 "HY000",
    /// A text that is not JSON, for a JSON column.
    InvalidJson = 3140 "22032",
    /// A text that is not JSON, as an argument.
    InvalidJsonText = 3141 "22032",
    /// A text that is not a JSON path.
    InvalidJsonPath = 3143 "42000",
    /// JSON cannot be made from a binary string.
    InvalidJsonCharset = 3144 "22032",
    /// An argument that is neither JSON nor a text.
    InvalidJsonType = 3146 "22032",
    /// A JSON path with a wildcard where none is allowed.
    JsonPathWildcard = 3149 "42000",
    /// A key over a JSON column.
    JsonKey = 3152 "42000",
    /// The path `$` where a part of the document must be named.
    JsonVacuousPath = 3153 "42000",
    /// An argument that must be 'one' or 'all'.
    JsonOneOrAll = 3154 "42000",
    /// A JSON number that is too large for the type it is cast to.
    JsonCastRange = 3155 "22003",
    /// A JSON value that cannot be cast to the type.
    InvalidJsonCast = 3156 "22018",
    /// NULL as a key of a JSON object.
    JsonNullKey = 3158 "22032",
    /// Connections must use TLS or a Unix socket.
    SecureTransportRequired = 3159 "HY000",
    /// A path that does not end in an array index.
    JsonPathNoCell = 3165 "42000",
    /// Key derivation: an unknown method.
    KeyMethod = 3235 "HY000",
    /// Key derivation: an invalid number of iterations.
    KeyIterations = 3236 "HY000",
    /// Key derivation: an invalid size of the key.
    KeySize = 3237 "HY000",
    /// Key derivation: an option that is NULL or too long.
    KeyOption = 3238 "HY000",
    /// The database to be altered is not known.
    DatabaseMissing = 3503 "42Y07",
    /// Bit operators over binary strings of different lengths.
    UnequalBytes = 3513 "HY000",
    /// A geometry of another type than the function expects.
    UnexpectedGeometry = 3516 "22S01",
    /// OF of a locking clause names no table of FROM.
    UnresolvedLockedTable = 3568 "HY000",
    /// A row is locked by another transaction, and NOWAIT is set.
    LockNotAvailable = 3572 "HY000",
    /// A common table expression that names itself has no UNION.
    RecursionWithoutUnion = 3573 "HY000",
    /// A common table expression that names itself: the query blocks that do not name it come first.
    RecursionOrder = 3574 "HY000",
    /// A query block that names its own common table expression aggregates.
    RecursionAggregated = 3575 "HY000",
    /// A query block that names its own common table expression must read another table before it.
    RecursionJoined = 3576 "HY000",
    /// A query block names its own common table expression twice, or in a subquery.
    RecursionReferences = 3577 "HY000",
    /// A window that is not defined.
    WindowUnknown = 3579 "HY000",
    /// Windows that build on each other in a circle.
    WindowCircle = 3580 "HY000",
    /// PARTITION BY in a window that builds on another.
    WindowPartition = 3581 "HY000",
    /// A window that builds on one with a frame.
    WindowInheritsFrame = 3582 "HY000",
    /// ORDER BY in a window and in the one that it builds on.
    WindowOrder = 3583 "HY000",
    /// A bound of a window frame is negative, NULL or not an integer.
    WindowFrameIllegal = 3586 "HY000",
    /// A RANGE frame with an offset, whose ORDER BY is neither numeric nor temporal.
    WindowRangeOrder = 3587 "HY000",
    /// A RANGE frame with a numeric offset over dates or times.
    WindowRangeTemporal = 3588 "HY000",
    /// A RANGE frame with an INTERVAL over numbers.
    WindowRangeNumeric = 3589 "HY000",
    /// Two windows of one name.
    WindowDuplicate = 3591 "HY000",
    /// A window function outside the select list and ORDER BY.
    WindowMisplaced = 3593 "HY000",
    /// A ROWS frame with an INTERVAL.
    WindowRowsInterval = 3596 "HY000",
    /// A longitude outside (-180, 180] degrees.
    LongitudeOutOfRange = 3616 "22S02",
    /// A latitude outside [-90, 90] degrees.
    LatitudeOutOfRange = 3617 "22S03",
    /// A recursive common table expression that exceeds `cte_max_recursion_depth`.
    RecursionDepth = 3636 "HY000",
    /// JSON_TABLE: no value at a column's path.
    JsonTableMissing = 3665 "22035",
    /// JSON_TABLE: an array or an object for a scalar column.
    JsonTableNested = 3666 "2203F",
    /// JSON_TABLE without an alias.
    TableFunctionWithoutAlias = 3667 "42000",
    /// JSON_TABLE: a value outside the range of its column.
    JsonTableRange = 3669 "22003",
    /// An invalid argument of a regular expression function.
    IllegalRegexp = 3685 "HY000",
    /// A start position beyond the end of the text.
    RegexpIndex = 3686 "HY000",
    /// A syntax error in a regular expression.
    RegexpSyntax = 3688 "HY000",
    /// Unbalanced parentheses in a regular expression.
    InvalidRegexp = 3691 "HY000",
    /// A bracket in a regular expression is not closed.
    UnclosedBracket = 3696 "HY000",
    /// A regular expression that is too long to be compiled.
    RegexpTooBig = 3700 "HY000",
    /// A radius that is zero or negative.
    NonPositiveRadius = 3706 "22003",
    /// A key over an expression whose values a key cannot hold.
    FunctionalIndexOnJson = 3753 "HY000",
    /// A primary key over an expression.
    FunctionalPrimaryKey = 3756 "HY000",
    /// See [`ErrorCode::FunctionalIndexOnJson`].
    FunctionalIndexOnBlob = 3757 "HY000",
    /// A key over an expression that is not allowed there, such as one that is not deterministic.
    IndexFunction = 3758 "HY000",
    /// See [`ErrorCode::GeneratedQuery`].
    GeneratedFunction = 3763 "HY000",
    /// A column cannot be dropped because the expression of a default needs it.
    DefaultNeedsColumn = 3766 "HY000",
    /// See [`ErrorCode::GeneratedOrder`].
    DefaultOrder = 3767 "HY000",
    /// See [`ErrorCode::GeneratedCounter`].
    DefaultCounter = 3768 "HY000",
    /// A default expression that uses a subquery, a forbidden function or a variable.
    DefaultQuery = 3769 "HY000",
    /// See [`ErrorCode::DefaultQuery`].
    DefaultFunction = 3770 "HY000",
    /// See [`ErrorCode::DefaultQuery`].
    DefaultVariable = 3772 "HY000",
    /// The CHECK condition of a column names another column.
    CheckOtherColumn = 3813 "HY000",
    /// See [`ErrorCode::CheckQuery`].
    CheckFunction = 3814 "HY000",
    /// A CHECK condition that uses a subquery, a forbidden function or a variable.
    CheckQuery = 3815 "HY000",
    /// See [`ErrorCode::CheckQuery`].
    CheckVariable = 3816 "HY000",
    /// A CHECK condition names the AUTO_INCREMENT column.
    CheckCounter = 3818 "HY000",
    /// A row violates a CHECK condition.
    CheckViolated = 3819 "HY000",
    /// A CHECK condition names a column that the table does not have.
    CheckUnknownColumn = 3820 "HY000",
    /// A CHECK condition of this name does not exist.
    CheckMissing = 3821 "HY000",
    /// A CHECK condition of this name exists.
    DuplicateCheck = 3822 "HY000",
    /// A column cannot be dropped because the expression of a key needs it.
    FunctionalIndexNeedsColumn = 3837 "HY000",
    /// Bytes that cannot be converted to the character set of the other operand.
    CannotConvertString = 3854 "HY000",
    /// Several constraints have this name.
    SeveralConstraints = 3939 "HY000",
    /// No constraint has this name.
    ConstraintMissing = 3940 "HY000",
    /// LOCAL INFILE is switched off.
    LocalInfileDisabled = 3948 "42000",
    /// A column cannot be dropped because a CHECK condition needs it.
    CheckNeedsColumn = 3959 "HY000",
    /// JSON_VALUE: there is no value.
    JsonValueMissing = 3966 "22035",
    /// JSON_VALUE: there are several values.
    JsonValueSeveral = 3967 "22034",
    /// A JSON value as a condition, which is compared with 0.
    JsonInCondition = 3986 "HY000",
    /// A regular expression and its subject have character sets that cannot be combined.
    CharacterSetMismatch = 3995 "HY000",
    /// A table without columns.
    TableNeedsColumns = 4028 "HY000",
    /// The client sent nothing for `wait_timeout`.
    ClientSilent = 4031 "HY000",
    /// INTERSECT or EXCEPT of the rows of a recursive common table expression, within itself.
    RecursionInSetOperation = 4114 "HY000",
    /// MariaDB: the account is locked.
    AccountLockedMariaDb = 4151 "HY000",
    /// The name of a user lock is too long.
    UserLockNameTooLong = 4163 "42000",
    /// FROM_DAYS: no date has this number.
    DateOutOfRange = 6527 "22003",
}

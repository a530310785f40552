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
    /// What Sphinx tells of a query that it changed.
    SearchWarning = 1000 "HY000",
    /// A database of that name exists.
    DatabaseExists = 1007 "HY000",
    /// The database to be dropped is not known.
    CannotDropDatabase = 1008 "HY000",
    /// There is no room on the disk.
    DiskFull = 1021 "HY000",
    /// A statement that would take too much memory.
    OutOfMemory = 1038 "HY001",
    /// Too many connections.
    TooManyConnections = 1040 "08004",
    /// No memory for what is asked.
    OutOfResources = 1041 "HY000",
    /// A login that is not what the protocol says.
    BadHandshake = 1043 "08S01",
    /// Access to a database denied.
    DatabaseAccessDenied = 1044 "42000",
    /// Wrong user or password.
    AccessDenied = 1045 "28000",
    /// No database is chosen.
    NoDatabase = 1046 "3D000",
    /// A command that is not known.
    UnknownCommand = 1047 "08S01",
    /// A column must have a value.
    ColumnCannotBeNull = 1048 "23000",
    /// The database is not known.
    UnknownDatabase = 1049 "42000",
    /// The table exists.
    TableExists = 1050 "42S01",
    /// The table to be dropped is not known.
    UnknownTable = 1051 "42S02",
    /// A name fits several columns.
    AmbiguousColumn = 1052 "23000",
    /// The server is stopping.
    ServerShutdown = 1053 "08S01",
    /// The column is not known.
    UnknownColumn = 1054 "42S22",
    /// A column is neither grouped nor aggregated.
    NotInGroupBy = 1055 "42000",
    /// A group that is an aggregate.
    WrongGroup = 1056 "42000",
    /// Columns named twice.
    DuplicateColumn = 1060 "42S21",
    /// Two keys of one name.
    DuplicateKeyName = 1061 "42000",
    /// A unique key's value exists.
    DuplicateKey = 1062 "23000",
    /// A specifier that the column's type does not take.
    WrongColumnSpecifier = 1063 "42000",
    /// The text is not a statement.
    ParseError = 1064 "42000",
    /// No statement at all.
    EmptyQuery = 1065 "42000",
    /// Two tables of one name.
    NonUniqueTable = 1066 "42000",
    /// A default that is none.
    InvalidDefault = 1067 "42000",
    /// A second primary key.
    MultiplePrimaryKeys = 1068 "42000",
    /// A key over a column that is not there.
    KeyColumnMissing = 1072 "42000",
    /// A column longer than its type may be.
    TooBigColumn = 1074 "42000",
    /// AUTO_INCREMENT on a column that is no key, or on two.
    WrongAutoIncrement = 1075 "42000",
    /// A table would have no columns left.
    CannotRemoveAllFields = 1090 "42000",
    /// A column or key to be dropped is not there.
    CannotDropField = 1091 "42000",
    /// A connection that is not there.
    UnknownThread = 1094 "HY000",
    /// A connection of someone else's.
    KillDenied = 1095 "HY000",
    /// `*` without a table.
    NoTablesUsed = 1096 "HY000",
    /// A SET of too many members.
    TooBigSet = 1097 "HY000",
    /// A default of a BLOB or TEXT column.
    BlobDefault = 1101 "42000",
    /// A database's name that is none.
    WrongDatabaseName = 1102 "42000",
    /// A table's name that is none.
    WrongTableName = 1103 "42000",
    /// Whatever has no code of its own.
    Unknown = 1105 "HY000",
    /// A table that the statement does not list.
    UnknownTableInDelete = 1109 "42S02",
    /// A column given twice.
    FieldSpecifiedTwice = 1110 "42000",
    /// An aggregate where none may stand.
    InvalidGroupFunction = 1111 "HY000",
    /// There is no more room for a table's rows.
    TableFull = 1114 "HY000",
    /// The character set is not known.
    UnknownCharset = 1115 "42000",
    /// More tables than MySQL joins.
    TooManyTables = 1116 "HY000",
    /// More columns than a SELECT or a table may have.
    TooManyColumns = 1117 "HY000",
    /// Too many logins from there failed.
    HostBlocked = 1129 "HY000",
    /// Nobody may come from there.
    HostNotAllowed = 1130 "HY000",
    /// Other columns than values.
    ValueCount = 1136 "21S01",
    /// Aggregated and plain columns without GROUP BY.
    MixedGroup = 1140 "42000",
    /// A table that may not be read or written.
    TableAccessDenied = 1142 "42000",
    /// A column that may not be read or written.
    ColumnAccessDenied = 1143 "42000",
    /// The table is not known.
    NoSuchTable = 1146 "42S02",
    /// A packet above the limit.
    PacketTooLarge = 1153 "08S01",
    /// Packets that do not follow each other.
    PacketsOutOfOrder = 1156 "08S01",
    /// A compressed packet that cannot be read.
    CannotUncompress = 1157 "08S01",
    /// A column's name that is none.
    WrongColumnName = 1166 "42000",
    /// A key over a BLOB or TEXT column without a length.
    BlobKeyWithoutLength = 1170 "42000",
    /// A primary key's part that allows NULL.
    PrimaryKeyNull = 1171 "42000",
    /// A SELECT INTO with several rows.
    TooManyRows = 1172 "42000",
    /// A key that is not there.
    KeyMissing = 1176 "42000",
    /// No text index fits MATCH.
    NoFulltextIndex = 1191 "HY000",
    /// A variable that is not known.
    UnknownVariable = 1193 "HY000",
    /// A transaction that changes too much.
    TransactionTooLarge = 1197 "HY000",
    /// The user has too many connections.
    TooManyUserConnections = 1203 "42000",
    /// A lock was not had in time.
    LockWaitTimeout = 1205 "HY000",
    /// Arguments of a function.
    WrongArguments = 1210 "HY000",
    /// Another transaction was first: try again.
    Deadlock = 1213 "40001",
    /// Words that do not go together.
    WrongUsage = 1221 "HY000",
    /// SELECTs of a UNION with other numbers of columns.
    UnionColumns = 1222 "21000",
    /// The user did something as often as it may.
    UserLimitReached = 1226 "42000",
    /// A right that is missing.
    SpecificAccessDenied = 1227 "42000",
    /// A session's variable that was to be set for all.
    LocalVariable = 1228 "HY000",
    /// A global variable that was to be set for the session.
    GlobalVariable = 1229 "HY000",
    /// A value that a variable cannot have.
    WrongValueForVariable = 1231 "42000",
    /// A variable of another type.
    WrongTypeForVariable = 1232 "42000",
    /// Something this version does not do.
    NotSupported = 1235 "42000",
    /// A binlog that cannot be sent from the place that was asked for.
    FatalReadingBinlog = 1236 "HY000",
    /// A variable that cannot be set.
    ReadOnlyVariable = 1238 "HY000",
    /// A subquery or row with another number of columns.
    OperandColumns = 1241 "21000",
    /// A subquery with several rows where one may be.
    SubqueryRows = 1242 "21000",
    /// A prepared statement that is not known.
    UnknownStatement = 1243 "HY000",
    /// A derived table without a name.
    DerivedWithoutAlias = 1248 "42000",
    /// The client speaks an older protocol.
    OldClient = 1251 "08004",
    /// A collation of another character set.
    CollationCharsetMismatch = 1253 "42000",
    /// What is to be uncompressed says that it is larger than texts may be.
    UncompressTooLarge = 1256 "HY000",
    /// What is uncompressed is longer than it says.
    UncompressRoom = 1258 "HY000",
    /// What is to be uncompressed is none that was compressed.
    UncompressData = 1259 "HY000",
    /// GROUP_CONCAT was cut.
    CutByGroupConcat = 1260 "HY000",
    /// A line of a file that ends before all columns have a value.
    TooFewFields = 1261 "01000",
    /// A line of a file with more values than columns.
    TooManyFields = 1262 "01000",
    /// A number outside of the column's range.
    OutOfRange = 1264 "22003",
    /// Text cut to the column's length.
    DataTruncated = 1265 "01000",
    /// Collations that do not mix.
    CollationMix = 1267 "HY000",
    /// The collation is not known.
    UnknownCollation = 1273 "HY000",
    /// A text index over a column that is no text.
    BadFulltextColumn = 1283 "HY000",
    /// The storage engine is not known.
    UnknownEngine = 1286 "42000",
    /// Syntax that is on its way out.
    DeprecatedSyntax = 1287 "HY000",
    /// A table whose rows cannot be changed.
    NotUpdatable = 1288 "HY000",
    /// An option forbids the statement.
    OptionPreventsStatement = 1290 "HY000",
    /// A value that is none of its type.
    TruncatedValue = 1292 "22007",
    /// ON UPDATE of a column that is no moment.
    InvalidOnUpdate = 1294 "HY000",
    /// A statement that cannot be prepared.
    NotPrepared = 1295 "HY000",
    /// The time zone is not known.
    UnknownTimeZone = 1298 "HY000",
    /// Bytes that are no text.
    InvalidCharacters = 1300 "HY000",
    /// A function's result was too long.
    FunctionResultTooLong = 1301 "HY000",
    /// A function, procedure or savepoint that is not there.
    DoesNotExist = 1305 "42000",
    /// Several result sets for a client that takes one.
    ManyResults = 1312 "0A000",
    /// The statement was killed.
    Interrupted = 1317 "70100",
    /// A SELECT INTO without a row.
    NoData = 1329 "02000",
    /// The table is not of this kind.
    WrongObject = 1347 "HY000",
    /// A clause that no view has.
    ViewClause = 1350 "HY000",
    /// A variable or parameter in a view.
    ViewVariable = 1351 "HY000",
    /// A temporary table in a view.
    ViewTemporaryTable = 1352 "HY000",
    /// A derived table or view with other names than columns.
    ViewColumns = 1353 "HY000",
    /// A view over what is not there, or may not be read.
    ViewInvalid = 1356 "HY000",
    /// A column without default has no value.
    NoDefault = 1364 "HY000",
    /// A division by zero in strict mode.
    DivisionByZero = 1365 "22012",
    /// A value that is none of its column's type.
    WrongValueForColumn = 1366 "HY000",
    /// There is no binary log here.
    NoBinaryLog = 1381 "HY000",
    /// A prepared statement with more parameters than a packet counts.
    TooManyParameters = 1390 "HY000",
    /// Text longer than its column.
    DataTooLong = 1406 "22001",
    /// A value that a function cannot read.
    WrongValueForFunction = 1411 "HY000",
    /// A value that is no geometry, or not the column's.
    NoGeometry = 1416 "22003",
    /// A prepared statement without an open cursor.
    NoCursor = 1421 "HY000",
    /// A scale above the most.
    TooBigScale = 1425 "42000",
    /// A precision above the most.
    TooBigPrecision = 1426 "42000",
    /// A scale above the precision.
    ScaleAbovePrecision = 1427 "42000",
    /// Another server, whose rows a table has, does not answer rightly.
    ForeignQuery = 1430 "HY000",
    /// A date beyond the calendar.
    DateOverflow = 1441 "22008",
    /// A view that would go to another database.
    SchemaChange = 1450 "HY000",
    /// Too many prepared statements.
    TooManyStatements = 1461 "42000",
    /// A view that reads itself.
    ViewRecursion = 1462 "HY000",
    /// No AUTO_INCREMENT value is left.
    AutoIncrementExhausted = 1467 "HY000",
    /// A table that takes no rows.
    NotInsertable = 1471 "HY000",
    /// Queries within queries, too deep.
    NestingTooDeep = 1473 "HY000",
    /// A literal that is none of its type.
    IncorrectValue = 1525 "HY000",
    /// An index that a foreign key needs is not dropped.
    IndexNeededByForeignKey = 1553 "HY000",
    /// Something that cannot be done within a transaction.
    TransactionOpen = 1568 "25001",
    /// The number of parameters of a function.
    WrongParameterCount = 1582 "42000",
    /// An option that changes nothing.
    OptionIgnored = 1618 "HY000",
    /// A variable that sessions only read.
    SessionVariable = 1621 "HY000",
    /// The locale is not known.
    UnknownLocale = 1649 "HY000",
    /// A number outside of its type's range.
    NumberOutOfRange = 1690 "22003",
    /// A rollback that does not bring temporary tables back.
    DroppedTemporary = 1752 "HY000",
    /// A GTID set that is none.
    MalformedGtidSet = 1772 "HY000",
    /// Writing in a read-only transaction.
    ReadOnlyTransaction = 1792 "25006",
    /// YEAR(2).
    InvalidYearWidth = 1818 "HY000",
    /// A password that must be changed first.
    PasswordExpired = 1820 "HY000",
    /// Two foreign keys of one name.
    DuplicateForeignKey = 1826 "HY000",
    /// A column that a foreign key needs is not dropped.
    ColumnNeededByForeignKey = 1828 "HY000",
    /// A key that is there already.
    DuplicateIndex = 1831 "HY000",
    /// A packet that says less than its command needs.
    MalformedPacket = 1835 "HY000",
    /// An expired password of a client that cannot change it.
    PasswordExpiredAtLogin = 1862 "HY000",
    /// An initialization vector that is too short.
    ShortVector = 1882 "HY000",
    /// MariaDB: the connection was killed.
    ConnectionKilled = 1927 "70100",
    /// A number that has no logarithm.
    InvalidLogarithm = 3020 "2201E",
    /// The statement took too long.
    QueryTimeout = 3024 "HY000",
    /// Two geometries of different reference systems.
    DifferentSrids = 3033 "HY000",
    /// A text or bytes that are no geometry.
    InvalidGeometry = 3037 "22023",
    /// No name of a lock.
    UserLockName = 3057 "42000",
    /// Sessions that would wait for each other's locks.
    UserLockDeadlock = 3058 "HY000",
    /// Distinct rows ordered by what is not selected.
    DistinctOrder = 3065 "HY000",
    /// A computed column that asks for more than its row: a query, a function.
    GeneratedQuery = 3102 "HY000",
    /// A value for a computed column.
    GeneratedColumnValue = 3105 "HY000",
    /// The account is locked.
    AccountLocked = 3118 "HY000",
    /// JSON text that is none.
    InvalidJson = 3140 "22032",
    /// Text that is no JSON, as an argument.
    InvalidJsonText = 3141 "22032",
    /// A path that is none.
    InvalidJsonPath = 3143 "42000",
    /// A JSON document from text in no character set.
    InvalidJsonCharset = 3144 "22032",
    /// A value that is neither JSON nor its text.
    InvalidJsonType = 3146 "22032",
    /// A JSON path with a wildcard where none may be.
    JsonPathWildcard = 3149 "42000",
    /// A key over a JSON column.
    JsonKey = 3152 "42000",
    /// A path to the whole document where a part is meant.
    JsonVacuousPath = 3153 "42000",
    /// A word that is neither 'one' nor 'all'.
    JsonOneOrAll = 3154 "42000",
    /// A JSON value that is no number of a kind.
    InvalidJsonCast = 3156 "22018",
    /// A key of a JSON object that is NULL.
    JsonNullKey = 3158 "22032",
    /// Only TLS and Unix sockets may be used.
    SecureTransportRequired = 3159 "HY000",
    /// A path that leads to no cell of an array.
    JsonPathNoCell = 3165 "42000",
    /// No method that makes a key of a password.
    KeyMethod = 3235 "HY000",
    /// Too few or too many rounds of such a method.
    KeyIterations = 3236 "HY000",
    /// A key that is longer than the cipher's.
    KeySize = 3237 "HY000",
    /// An option of such a method that is NULL or too long.
    KeyOption = 3238 "HY000",
    /// Another geometry than a function takes.
    UnexpectedGeometry = 3516 "22S01",
    /// A bound of a window's frame is negative, NULL or no number.
    WindowFrameIllegal = 3586 "HY000",
    /// A window's frame goes by the distance of what is no number and no date or time.
    WindowRangeOrder = 3587 "HY000",
    /// A window's frame goes by a number over dates or times.
    WindowRangeTemporal = 3588 "HY000",
    /// A window's frame goes by an INTERVAL over numbers.
    WindowRangeNumeric = 3589 "HY000",
    /// A window's frame of rows has an INTERVAL.
    WindowRowsInterval = 3596 "HY000",
    /// A longitude beyond half a turn.
    LongitudeOutOfRange = 3616 "22S02",
    /// A latitude beyond a pole.
    LatitudeOutOfRange = 3617 "22S03",
    /// A recursive common table expression that does not end.
    RecursionDepth = 3636 "HY000",
    /// JSON_TABLE: nothing at a column's path.
    JsonTableMissing = 3665 "22035",
    /// JSON_TABLE: an array or an object for a column of scalars.
    JsonTableNested = 3666 "2203F",
    /// JSON_TABLE without a name.
    TableFunctionWithoutAlias = 3667 "42000",
    /// JSON_TABLE: a value that a column has no room for.
    JsonTableRange = 3669 "22003",
    /// An argument that no regular expression has.
    IllegalRegexp = 3685 "HY000",
    /// A place beyond the text.
    RegexpIndex = 3686 "HY000",
    /// A regular expression that is not understood.
    RegexpSyntax = 3688 "HY000",
    /// A regular expression with a parenthesis too many or too few.
    InvalidRegexp = 3691 "HY000",
    /// A bracket that is not closed.
    UnclosedBracket = 3696 "HY000",
    /// A pattern longer than is compiled.
    RegexpTooBig = 3700 "HY000",
    /// A sphere without an inside.
    NonPositiveRadius = 3706 "22003",
    /// A key over an expression whose values no key can hold.
    FunctionalIndexOnJson = 3753 "HY000",
    /// A primary key over an expression.
    FunctionalPrimaryKey = 3756 "HY000",
    /// See [`ErrorCode::FunctionalIndexOnJson`].
    FunctionalIndexOnBlob = 3757 "HY000",
    /// What an index may not be over.
    IndexFunction = 3758 "HY000",
    /// See [`ErrorCode::GeneratedQuery`].
    GeneratedFunction = 3763 "HY000",
    /// A default that asks for more than it may: a query, a function, a variable.
    DefaultQuery = 3769 "HY000",
    /// See [`ErrorCode::DefaultQuery`].
    DefaultFunction = 3770 "HY000",
    /// See [`ErrorCode::DefaultQuery`].
    DefaultVariable = 3772 "HY000",
    /// See [`ErrorCode::CheckQuery`].
    CheckFunction = 3814 "HY000",
    /// A condition that asks for more than its row: a query, a function, a variable.
    CheckQuery = 3815 "HY000",
    /// See [`ErrorCode::CheckQuery`].
    CheckVariable = 3816 "HY000",
    /// A condition that the row fails.
    CheckViolated = 3819 "HY000",
    /// A condition that is not there.
    CheckMissing = 3821 "HY000",
    /// A condition of that name exists.
    DuplicateCheck = 3822 "HY000",
    /// A column of a key's expression that would be gone.
    FunctionalIndexNeedsColumn = 3837 "HY000",
    /// Bytes that are no text beside one.
    CannotConvertString = 3854 "HY000",
    /// Several conditions and keys have that name.
    SeveralConstraints = 3939 "HY000",
    /// No condition and no key has that name.
    ConstraintMissing = 3940 "HY000",
    /// LOCAL INFILE is switched off.
    LocalInfileDisabled = 3948 "42000",
    /// JSON_VALUE: there is no value.
    JsonValueMissing = 3966 "22035",
    /// JSON_VALUE: there are several values.
    JsonValueSeveral = 3967 "22034",
    /// A regular expression and what it is sought in have different character sets.
    CharacterSetMismatch = 3995 "HY000",
    /// A table without columns.
    TableNeedsColumns = 4028 "HY000",
    /// The client was silent for too long.
    ClientSilent = 4031 "HY000",
    /// MariaDB: the account is locked.
    AccountLockedMariaDb = 4151 "HY000",
    /// A lock's name that is too long.
    UserLockNameTooLong = 4163 "42000",
}

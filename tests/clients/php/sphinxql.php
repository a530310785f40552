<?php
// PHP's mysqli and PDO with SphinxQL: searches with parameters, several results, SHOW META, errors.
//
// The table is the one that tests/clients/main.rs makes.
//
//   sphinxql.php PORT
declare(strict_types=1);

$port = (int) $argv[1];

function same(string $what, mixed $got, mixed $expected): void
{
    if ($got !== $expected) {
        fwrite(STDERR, "$what: " . json_encode($got) . ' instead of ' . json_encode($expected) . "\n");
        exit(1);
    }
}

mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$mysqli = new mysqli('127.0.0.1', 'root', '', 'press', $port);
$mysqli->query("SET sql_dialect = 'sphinx'");
$rows = fn(string $sql): array => $mysqli->query($sql)->fetch_all();
same('weights', $rows("SELECT id, WEIGHT() FROM articles WHERE MATCH('fox')"), [['1', '2500'], ['2', '2500']]);
$meta = array_column($rows('SHOW META'), 1, 0);
same('SHOW META', [$meta['total_found'], $meta['keyword[0]'], $meta['docs[0]']], ['2', 'fox', '2']);
$query = $mysqli->real_escape_string('"quick brown"~2');
same('a proximity', $rows("SELECT id FROM articles WHERE MATCH('$query') OPTION ranker=sph04"), [['1']]);
$mysqli->multi_query("SELECT id FROM articles WHERE MATCH('dog') ORDER BY id ASC FACET year; SHOW META LIKE 'total_found'");
$sets = [];
do {
    $sets[] = $mysqli->store_result()->fetch_all();
} while ($mysqli->more_results() && $mysqli->next_result());
same('several results', $sets, [[['2'], ['3']], [['2002', '2']], [['total_found', '2']]]);
try {
    $rows("SELECT id FROM articles WHERE MATCH('@nofield x')");
    same('an unknown field', 'no error', 'an error');
} catch (mysqli_sql_exception $error) {
    same('the number of an error', $error->getCode(), 1064);
}
$statement = $mysqli->prepare('SELECT id, year FROM articles WHERE MATCH(?) AND year > ? ORDER BY id ASC');
$statement->execute(['fox | dog', 2001]);
same('a prepared statement', $statement->get_result()->fetch_all(), [[2, 2002], [3, 2002]]);

foreach ([true, false] as $emulates) {
    $pdo = new PDO("mysql:host=127.0.0.1;port=$port;dbname=press", 'root', '', [PDO::ATTR_EMULATE_PREPARES => $emulates]);
    $pdo->exec("SET sql_dialect = 'sphinx'");
    $statement = $pdo->prepare('SELECT id, WEIGHT() AS weight FROM articles WHERE MATCH(:words) ORDER BY id ASC LIMIT 5');
    $statement->execute(['words' => '@title fox']);
    same('PDO', array_map('intval', array_column($statement->fetchAll(PDO::FETCH_ASSOC), 'weight', 'id')), [1 => 1500, 2 => 1500]);
}
echo "ok\n";

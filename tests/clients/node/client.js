// mysql2: text and prepared statements, types, errors.
'use strict';

const assert = require('node:assert');
const mysql = require('mysql2/promise');

async function main() {
  const port = Number(process.argv[2]);
  const connection = await mysql.createConnection({ host: '127.0.0.1', port, user: 'root' });
  await connection.query('CREATE DATABASE node_test');
  await connection.changeUser({ database: 'node_test' });
  await connection.query(
    'CREATE TABLE notes (id INT AUTO_INCREMENT PRIMARY KEY, body TEXT, size BIGINT, ' +
      'price DECIMAL(8,2), at DATETIME, extra JSON)',
  );
  const [made] = await connection.execute(
    'INSERT INTO notes (body, size, price, at, extra) VALUES (?, ?, ?, ?, ?)',
    ['snow \u2603 \u{1F600}', 42, '3.50', '2024-01-02 03:04:05', JSON.stringify({ a: [1, 2] })],
  );
  assert.strictEqual(made.insertId, 1);
  const [rows, fields] = await connection.execute('SELECT * FROM notes WHERE id = ?', [1]);
  assert.strictEqual(rows[0].body, 'snow \u2603 \u{1F600}');
  assert.strictEqual(rows[0].size, 42);
  assert.strictEqual(rows[0].price, '3.50');
  assert.deepStrictEqual(rows[0].extra, { a: [1, 2] });
  assert.strictEqual(rows[0].at.getFullYear(), 2024);
  assert.deepStrictEqual(fields.map((field) => field.name).slice(0, 2), ['id', 'body']);
  const [plain] = await connection.query('SELECT price FROM notes WHERE body LIKE ?', ['%snow%']);
  assert.strictEqual(plain[0].price, '3.50');
  await connection.beginTransaction();
  await connection.query('DELETE FROM notes');
  await connection.rollback();
  const [[counted]] = await connection.query('SELECT COUNT(*) AS n FROM notes');
  assert.strictEqual(counted.n, 1);
  const [columns] = await connection.query('SHOW COLUMNS FROM notes');
  assert.strictEqual(columns[0].Extra, 'auto_increment');
  await assert.rejects(connection.query('SELECT nothing FROM notes'), { errno: 1054 });
  await connection.query('DROP DATABASE node_test');
  await connection.end();
  console.log('ok');
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});

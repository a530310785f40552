CREATE TABLE numbers (
  id INT PRIMARY KEY, ti TINYINT, si SMALLINT UNSIGNED, i INT, u INT UNSIGNED, b BIGINT,
  bu BIGINT UNSIGNED, d DECIMAL(10,2), w DECIMAL(30,10), f FLOAT, db DOUBLE, y YEAR);
INSERT INTO numbers VALUES
  (1, 1, 1, 1, 1, 1, 1, 1.00, 1.5, 1.5, 1.5, 2001),
  (2, -128, 0, -2147483648, 0, -9223372036854775808, 0, -99999999.99, -12345678901234567890.0123456789, -0.25, -1e100, 1901),
  (3, 127, 65535, 2147483647, 4294967295, 9223372036854775807, 18446744073709551615, 99999999.99, 12345678901234567890.9876543210, 1000000, 1e15, 2155),
  (4, 0, 10, 0, 7, 42, 99, 0.05, 0, 0, 0, 0),
  (5, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (6, 5, 5, 42, 42, 1000000007, 12345, 3.14, 2.7182818284, 0.5, 0.1, 2024),
  (7, -7, 3, -15, 3, -15, 15, -2.50, -2.5, -7.125, -2.5, 1999);
CREATE TABLE texts (
  id INT PRIMARY KEY, s VARCHAR(50), c CHAR(10), x VARCHAR(50) COLLATE utf8mb4_bin,
  g VARCHAR(50) COLLATE utf8mb4_general_ci, t TEXT, o VARBINARY(50),
  e ENUM('small','medium','large'), m SET('red','green','blue'));
INSERT INTO texts VALUES
  (1, 'apple', 'apple', 'apple', 'apple', 'An apple a day', 'apple', 'small', 'red'),
  (2, 'Apple', 'Apple', 'Apple', 'Apple', 'APPLE PIE', 'Apple', 'large', 'red,blue'),
  (3, 'Äpfel', 'Äpfel', 'Äpfel', 'Äpfel', 'Äpfel und Birnen', 'x', 'medium', ''),
  (4, 'banana', 'banana', 'banana', 'banana', 'banana split', 'banana', 'medium', 'green'),
  (5, '', '', '', '', '', '', NULL, NULL),
  (6, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (7, '12abc', '12', '12abc', '12', '12 monkeys', '12', 'small', 'red,green,blue'),
  (8, '日本語', '日本', '日本語', '日本語', '日本語の文', 'z', 'large', 'blue'),
  (9, 'Straße', 'Strasse', 'Straße', 'Straße', 'Die Straße', 'B', 'small', 'green,blue'),
  (10, 'résumé', 'resume', 'resume', 'RESUME', 'a_b%c', 'a', 'large', 'red');
CREATE TABLE dates (
  id INT PRIMARY KEY, dt DATE, dm DATETIME, d3 DATETIME(3), ts TIMESTAMP NULL, tm TIME, t2 TIME(2));
INSERT INTO dates VALUES
  (1, '2020-01-31', '2020-01-31 10:11:12', '2020-01-31 10:11:12.345', '2020-01-31 10:11:12', '10:11:12', '10:11:12.34'),
  (2, '2020-02-29', '2020-02-29 23:59:59', '2020-02-29 23:59:59.999', '2020-02-29 23:59:59', '-01:30:00', '-00:00:01.50'),
  (3, '1999-12-31', '1999-12-31 00:00:00', '1999-12-31 00:00:00.000', '1999-12-31 00:00:00', '838:59:59', '100:00:00.00'),
  (4, NULL, NULL, NULL, NULL, NULL, NULL),
  (5, '2024-07-15', '2024-07-15 06:07:08', '2024-07-15 06:07:08.900', '2024-07-15 06:07:08', '00:00:00', '23:59:59.99'),
  (6, '2019-03-10', '2019-03-10 12:00:00', '2019-03-10 12:00:00.500', '2019-03-10 12:00:00', '12:00:00', '12:00:00.00');
CREATE TABLE docs (id INT PRIMARY KEY, j JSON);
INSERT INTO docs VALUES
  (1, '{"a": 1, "b": [1, 2, {"c": "x"}], "name": "one"}'),
  (2, '[1, "two", null, true, 2.5]'),
  (3, '"text"'),
  (4, '17'),
  (5, NULL),
  (6, '{"a": "1", "b": {}, "name": "Two", "long key": [[]]}'),
  (7, '{}'),
  (8, 'null');
CREATE TABLE staff (
  id INT PRIMARY KEY, name VARCHAR(30) NOT NULL, dept INT, boss INT, salary DECIMAL(10,2), hired DATE);
INSERT INTO staff VALUES
  (1, 'Ann', 1, NULL, 9000.00, '2010-01-01'), (2, 'Bob', 1, 1, 5000.50, '2012-05-01'),
  (3, 'cid', 2, 1, 5000.50, '2013-07-15'), (4, 'Dan', 2, 3, 3000.00, '2015-02-28'),
  (5, 'Eve', 3, 1, 7000.00, '2011-11-11'), (6, 'fay', NULL, 5, NULL, '2020-02-29'),
  (7, 'Gus', 3, 5, 3000.00, NULL), (8, 'bob', 9, 5, 1.00, '2021-01-01');
CREATE TABLE depts (id INT PRIMARY KEY, label VARCHAR(30), city VARCHAR(30) COLLATE utf8mb4_bin);
INSERT INTO depts VALUES (1, 'Sales', 'Rome'), (2, 'research', 'rome'), (3, 'Board', 'Oslo'), (4, 'Empty', NULL);
CREATE TABLE sales (
  id INT PRIMARY KEY, who INT, item VARCHAR(20), amount INT, price DECIMAL(8,2), day DATE);
INSERT INTO sales VALUES
  (1, 2, 'pen', 10, 1.50, '2020-01-01'), (2, 2, 'Pen', 5, 1.55, '2020-01-02'),
  (3, 3, 'ink', 2, 7.25, '2020-01-02'), (4, 4, 'pad', 1, 3.99, '2020-01-03'),
  (5, 2, 'pad', 3, 3.99, '2020-01-05'), (6, 5, 'ink', NULL, 7.00, '2020-01-05'),
  (7, 3, 'INK', 4, NULL, '2020-01-07'), (8, NULL, 'pen', 1, 1.50, NULL);

// Chains of foreign keys that are made and changed while nothing is applied: the source, which is ahead, cannot tell the
// definition that a table in the middle had.

@case rows go while the foreign keys of the table in the middle are not known
CREATE TABLE other (id INT PRIMARY KEY)
@behind stalled
INSERT INTO other VALUES (1)
CREATE TABLE first (id INT PRIMARY KEY)
CREATE TABLE p (id INT PRIMARY KEY, x INT)
CREATE TABLE c (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE)
CREATE TABLE g (id INT AUTO_INCREMENT PRIMARY KEY, cid INT, FOREIGN KEY (cid) REFERENCES c (id) ON DELETE CASCADE)
INSERT INTO p VALUES (1, 1), (2, 2), (3, 3)
INSERT INTO c VALUES (1, 1), (2, 2), (3, 3)
INSERT INTO g (cid) SELECT id FROM c
DELETE FROM p WHERE id = 1
ALTER TABLE c ADD COLUMN a1 INT AFTER id, ALGORITHM=COPY
@compare
DELETE FROM p WHERE id = 2

@case rows of a renamed table go while the foreign keys of the table in the middle are not known
CREATE TABLE other (id INT PRIMARY KEY)
@behind stalled
INSERT INTO other VALUES (1)
CREATE TABLE first (id INT PRIMARY KEY)
CREATE TABLE p (id INT PRIMARY KEY, x INT)
CREATE TABLE c (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE)
CREATE TABLE g (id INT AUTO_INCREMENT PRIMARY KEY, cid INT, FOREIGN KEY (cid) REFERENCES c (id) ON DELETE CASCADE)
INSERT INTO p VALUES (1, 1), (2, 2), (3, 3)
INSERT INTO c VALUES (1, 1), (2, 2), (3, 3)
INSERT INTO g (cid) SELECT id FROM c
ALTER TABLE c ADD COLUMN a1 INT AFTER id, ALGORITHM=COPY
ALTER TABLE p RENAME TO q
DELETE FROM q WHERE id = 1
@compare
DELETE FROM q WHERE id = 2

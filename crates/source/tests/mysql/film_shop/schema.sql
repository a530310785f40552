-- A shop that lends films: foreign keys, composite keys, triggers, views, generated times.
CREATE TABLE country (
  country_id SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  name VARCHAR(50) NOT NULL,
  changed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP
) ENGINE=InnoDB DEFAULT CHARSET=utf8;

CREATE TABLE address (
  address_id SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  street VARCHAR(80) NOT NULL,
  district VARCHAR(20) NOT NULL,
  country_id SMALLINT UNSIGNED NOT NULL,
  phone VARCHAR(20) NOT NULL,
  location GEOMETRY NOT NULL,
  changed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  KEY (country_id),
  CONSTRAINT address_country FOREIGN KEY (country_id) REFERENCES country (country_id)
    ON DELETE RESTRICT ON UPDATE RESTRICT
) ENGINE=InnoDB DEFAULT CHARSET=utf8;

CREATE TABLE performer (
  performer_id SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  first_name VARCHAR(45) NOT NULL,
  last_name VARCHAR(45) NOT NULL,
  KEY (last_name)
) ENGINE=InnoDB DEFAULT CHARSET=latin1;

CREATE TABLE film (
  film_id SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  title VARCHAR(128) NOT NULL,
  description TEXT,
  released YEAR,
  days_lent TINYINT UNSIGNED NOT NULL DEFAULT 3,
  fee DECIMAL(4,2) NOT NULL DEFAULT 4.99,
  minutes SMALLINT UNSIGNED,
  replacement_cost DECIMAL(5,2) NOT NULL DEFAULT 19.99,
  rating ENUM('G','PG','PG-13','R','NC-17') DEFAULT 'G',
  extras SET('Trailers','Commentaries','Deleted Scenes','Behind the Scenes'),
  changed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  KEY (title)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE film_performer (
  performer_id SMALLINT UNSIGNED NOT NULL,
  film_id SMALLINT UNSIGNED NOT NULL,
  PRIMARY KEY (performer_id, film_id),
  KEY (film_id),
  CONSTRAINT cast_performer FOREIGN KEY (performer_id) REFERENCES performer (performer_id),
  CONSTRAINT cast_film FOREIGN KEY (film_id) REFERENCES film (film_id)
) ENGINE=InnoDB;

CREATE TABLE film_text (
  film_id SMALLINT NOT NULL PRIMARY KEY,
  title VARCHAR(128) NOT NULL,
  description TEXT,
  FULLTEXT KEY (title, description)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE customer (
  customer_id SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  name VARCHAR(90) NOT NULL,
  email VARCHAR(50),
  address_id SMALLINT UNSIGNED NOT NULL,
  active BOOLEAN NOT NULL DEFAULT TRUE,
  picture BLOB,
  created DATETIME NOT NULL,
  CONSTRAINT customer_address FOREIGN KEY (address_id) REFERENCES address (address_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8;

CREATE TABLE rental (
  rental_id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  lent DATETIME NOT NULL,
  film_id SMALLINT UNSIGNED NOT NULL,
  customer_id SMALLINT UNSIGNED NOT NULL,
  returned DATETIME,
  UNIQUE KEY (lent, film_id, customer_id)
) ENGINE=InnoDB;

CREATE TABLE payment (
  payment_id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  customer_id SMALLINT UNSIGNED NOT NULL,
  rental_id INT,
  amount DECIMAL(5,2) NOT NULL,
  paid DATETIME(3) NOT NULL,
  note VARCHAR(60) CHARACTER SET utf8mb4 NULL
) ENGINE=InnoDB;

DELIMITER ;;
CREATE TRIGGER film_added AFTER INSERT ON film FOR EACH ROW BEGIN
  INSERT INTO film_text VALUES (new.film_id, new.title, new.description);
END;;
CREATE TRIGGER film_changed AFTER UPDATE ON film FOR EACH ROW BEGIN
  UPDATE film_text SET title = new.title, description = new.description, film_id = new.film_id
  WHERE film_id = old.film_id;
END;;
CREATE TRIGGER film_removed AFTER DELETE ON film FOR EACH ROW BEGIN
  DELETE FROM film_text WHERE film_id = old.film_id;
END;;
CREATE PROCEDURE lend(IN film INT, IN person INT) BEGIN
  INSERT INTO rental (lent, film_id, customer_id) VALUES (NOW(), film, person);
  INSERT INTO payment (customer_id, rental_id, amount, paid)
    SELECT person, LAST_INSERT_ID(), fee, NOW(3) FROM film WHERE film_id = film LIMIT 1;
END;;
DELIMITER ;

CREATE VIEW film_list AS
  SELECT film_id, title, fee FROM film WHERE rating IN ('G', 'PG');

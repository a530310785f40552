import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;

/** A JDBC driver: prepared statements on either side, batches, transactions, metadata, errors. */
public final class Client {
  private static void check(boolean holds, String what) {
    if (!holds) {
      throw new AssertionError(what);
    }
  }

  public static void main(String[] arguments) throws SQLException {
    String address = arguments[0];
    try (Connection server = DriverManager.getConnection(address + "/", "root", "");
        Statement statement = server.createStatement()) {
      statement.execute("CREATE DATABASE java_test");
    }
    String options = arguments.length > 1 ? "?" + arguments[1] : "";
    try (Connection connection =
        DriverManager.getConnection(address + "/java_test" + options, "root", "")) {
      run(connection);
      connection.createStatement().execute("DROP DATABASE java_test");
    }
    System.out.println("ok");
  }

  private static void run(Connection connection) throws SQLException {
    Statement statement = connection.createStatement();
    statement.execute(
        "CREATE TABLE parts (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(50) NOT NULL,"
            + " price DECIMAL(9,3), at DATETIME, KEY by_name (name))");
    connection.setAutoCommit(false);
    Timestamp moment = Timestamp.valueOf("2024-06-01 08:09:10");
    String insert = "INSERT INTO parts (name, price, at) VALUES (?, ?, ?)";
    try (PreparedStatement prepared =
        connection.prepareStatement(insert, Statement.RETURN_GENERATED_KEYS)) {
      for (int number = 0; number < 50; number++) {
        prepared.setString(1, "part " + number);
        prepared.setBigDecimal(2, new BigDecimal("1.125"));
        prepared.setTimestamp(3, moment);
        prepared.addBatch();
      }
      check(prepared.executeBatch().length == 50, "batch");
      ResultSet keys = prepared.getGeneratedKeys();
      check(keys.next() && keys.getInt(1) == 1, "generated keys");
    }
    connection.commit();
    statement.executeUpdate("DELETE FROM parts");
    connection.rollback();
    connection.setAutoCommit(true);
    try (PreparedStatement prepared =
        connection.prepareStatement("SELECT name, price, at FROM parts WHERE id = ?")) {
      prepared.setInt(1, 5);
      ResultSet row = prepared.executeQuery();
      check(row.next() && row.getString("name").equals("part 4"), "name");
      check(row.getBigDecimal("price").equals(new BigDecimal("1.125")), "price");
      check(row.getTimestamp("at").equals(moment), "moment");
    }
    DatabaseMetaData metadata = connection.getMetaData();
    ResultSet tables = metadata.getTables("java_test", null, "%", new String[] {"TABLE"});
    check(tables.next() && tables.getString("TABLE_NAME").equals("parts"), "tables");
    ResultSet columns = metadata.getColumns("java_test", null, "parts", "%");
    check(columns.next() && columns.getString("COLUMN_NAME").equals("id"), "columns");
    ResultSet key = metadata.getPrimaryKeys("java_test", null, "parts");
    check(key.next() && key.getString("COLUMN_NAME").equals("id"), "primary key");
    try {
      statement.executeQuery("SELECT 1 FROM missing");
      throw new AssertionError("a table that is not there");
    } catch (SQLException error) {
      check(error.getErrorCode() == 1146 && error.getSQLState().equals("42S02"), "error");
    }
  }
}

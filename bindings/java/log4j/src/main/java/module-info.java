/** An appender for Log4j 2 that writes to Tampu. */
module org.tampu.log4j {
    requires org.tampu;
    requires transitive org.apache.logging.log4j;
    requires transitive org.apache.logging.log4j.core;

    exports org.tampu.log4j;

    // Log4j makes and configures appenders by reflection.
    opens org.tampu.log4j to org.apache.logging.log4j.core;
}

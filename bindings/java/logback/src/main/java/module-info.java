/** An appender for Logback that writes to Tampu. */
module org.tampu.logback {
    requires org.tampu;
    requires org.slf4j;
    requires transitive ch.qos.logback.core;
    requires transitive ch.qos.logback.classic;

    exports org.tampu.logback;

    // Logback makes and configures appenders by reflection.
    opens org.tampu.logback to ch.qos.logback.core, ch.qos.logback.classic;
}

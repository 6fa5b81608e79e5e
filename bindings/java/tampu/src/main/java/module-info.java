/** Tampu's clients in pure Java. They need nothing at run time but the JDK. */
module org.tampu {
    requires java.net.http;
    requires transitive java.logging;

    exports org.tampu.book;
    exports org.tampu.bulk;
    exports org.tampu.event;
    exports org.tampu.gateway;
    exports org.tampu.log;
    exports org.tampu.internal.call to org.tampu.slf4j, org.tampu.logback, org.tampu.log4j, org.tampu.bench;
}

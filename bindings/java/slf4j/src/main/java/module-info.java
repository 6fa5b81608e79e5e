/** Tampu as a provider of slf4j 2. */
module org.tampu.slf4j {
    requires org.tampu;
    requires transitive org.slf4j;

    exports org.tampu.slf4j;

    provides org.slf4j.spi.SLF4JServiceProvider with org.tampu.slf4j.TampuServiceProvider;
}

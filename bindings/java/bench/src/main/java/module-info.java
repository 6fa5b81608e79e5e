/** Cost of log calls, of events and of bulk data, beside peers. */
module org.tampu.bench {
    requires org.tampu;
    requires org.tampu.slf4j;
    requires org.tampu.logback;
    requires org.tampu.log4j;
    requires org.slf4j;
    requires org.zeromq.jeromq;
}

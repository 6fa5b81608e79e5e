package org.tampu.slf4j;

import org.slf4j.ILoggerFactory;
import org.slf4j.IMarkerFactory;
import org.slf4j.helpers.BasicMarkerFactory;
import org.slf4j.spi.MDCAdapter;
import org.slf4j.spi.SLF4JServiceProvider;

/**
 * The provider that slf4j finds on the class path or module path: all records go to Tampu.
 *
 * <p>Properties: {@code tampu.source} (name of the process; default: its main class), {@code tampu.level} and {@code
 * tampu.level.NAME} (least level, of all loggers and of those below NAME; default {@code TAMPU_LOG_LEVEL}, else Info),
 * {@code tampu.locate} (least level of records with their place in the code; default Warning).
 */
public final class TampuServiceProvider implements SLF4JServiceProvider {
    private final BasicMarkerFactory markers = new BasicMarkerFactory();
    private final TampuMdc mdc = new TampuMdc();
    private TampuLoggerFactory loggers;

    @Override
    public ILoggerFactory getLoggerFactory() {
        return loggers;
    }

    @Override
    public IMarkerFactory getMarkerFactory() {
        return markers;
    }

    @Override
    public MDCAdapter getMDCAdapter() {
        return mdc;
    }

    @Override
    public String getRequestedApiVersion() {
        return "2.0.99";
    }

    @Override
    public void initialize() {
        loggers = new TampuLoggerFactory(mdc);
    }
}

package org.tampu.internal.call;

import java.util.Arrays;

/**
 * One log call on its way into a ring, as an adapter fills it. A thread uses one again and again.
 *
 * <p>Only {@code level} and {@code voice} are needed. {@link LogCore#log} reads it and forgets nothing: the adapter
 * resets it.
 */
public final class LogEvent {
    static final Object[] NONE = {};

    /** ACS's number of the level. */
    public int level;
    /** Fields of the logger. */
    public LogCore.KnownVoice voice;
    /** Time in ns of UTC; 0 for now. */
    public long time;
    /** Name of another thread that the record is from, or null. */
    public String thread;
    /** The message, with places for arguments unless {@code arguments} is empty. */
    public String message;
    /** True for the places of {@code java.util.logging}, <code>{0}</code>. */
    public boolean isNumbered;
    /** Values for the message's places. */
    public Object[] arguments = NONE;
    /** Number of arguments in use; the array may be longer. */
    public int count;
    /** The exception of the call, or null. */
    public Throwable thrown;
    /** The place in the code if the caller knows it, or null. */
    public StackTraceElement where;
    /** Fields that only a whole record has, or null. */
    public Rare rare;

    String[] names = new String[8];
    Object[] values = new Object[8];
    int data;

    /** Fields that few records have; a record with one of them is stored whole. */
    public static final class Rare {
        /** Host of the record, if it is another than this. */
        public String host = "";
        /** Process of the record, if it is another than this. */
        public String process = "";
        /** Address of further information. */
        public String uri = "";
        /** Error chain that the record belongs to. */
        public String stackId = "";
        /** Place in the chain, 0 the outermost; -1 for none. */
        public int stackLevel = -1;
        /** The number that the writer gave instead of the level's; -1 for none. */
        public int priority = -1;
    }

    /** Takes the last argument as the exception of the call if it is one, unless there is one already. */
    public void takeException() {
        if (thrown == null && count > 0 && arguments[count - 1] instanceof Throwable last) {
            thrown = last;
        }
    }

    /** Adds a named value beside the message. */
    public LogEvent data(String name, Object value) {
        if (data == names.length) {
            if (data >= Payload.ARGUMENTS_MAX / 2) {
                return this;
            }
            names = Arrays.copyOf(names, 2 * data);
            values = Arrays.copyOf(values, 2 * data);
        }
        names[data] = name == null ? "" : name;
        values[data++] = value;
        return this;
    }

    /** Forgets all of the previous call but its logger. */
    public LogEvent reset() {
        time = 0;
        thread = null;
        message = null;
        isNumbered = false;
        arguments = NONE;
        count = 0;
        thrown = null;
        where = null;
        rare = null;
        Arrays.fill(values, 0, data, null);
        data = 0;
        return this;
    }
}

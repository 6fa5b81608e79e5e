/** The logbook of a hub: {@link org.tampu.book.Logbook}. */
package org.tampu.book;

/** Attribute events through a hub's gateway: {@link org.tampu.event.EventServer} and {@link org.tampu.event.EventClient}. */
package org.tampu.event;

// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Records that travel with frames inside the transmit path.
package tx_pkg;
  import ferronic_pkg::*;

  // What becomes of a frame.
  typedef enum logic [2:0] {
    TxOk      = 3'd0,
    TxShort   = 3'd1, // no whole Ethernet header behind the virtio header
    TxLong    = 3'd2, // a frame of more than MaxFrameBytes would leave
    TxRead    = 3'd3, // a read of host memory failed
    TxOther   = 3'd4, // broken descriptor chain: its buffer is not returned
    TxOffload = 3'd5  // asks for what was not negotiated or cannot be done
  } tx_kind_e;

  // Bytes of a buffer, its virtio header included: 12, Ethernet with two VLAN tags, an IP packet.
  localparam int unsigned TxLenW = 17;
  localparam int unsigned MaxPlainBytes = VirtioHdrBytes + MaxFrameBytes;
  localparam int unsigned MaxGsoBytes = VirtioHdrBytes + 22 + 65535;
  typedef logic [TxLenW-1:0] tx_len_t;

  // All headers of a frame that is to be cut up lie in its first 142 bytes at most: two VLAN tags,
  // the longest IPv4 and TCP headers.
  localparam int unsigned TxHdrBytes = 144;

  // From the reader, one for each read and one for a frame that ends without: in order.
  typedef struct packed {
    logic        reads; // a read is to be waited for
    logic        last;  // of its frame
    tx_kind_e    kind;  // with last
    qid_t        q;
    logic        marker;
    logic [15:0] id;
    tx_len_t     len;   // bytes of the frame in the landing RAM, the virtio header included
  } tx_record_t;

  // The oldest frame that is wholly in the landing RAM.
  typedef struct packed {
    tx_kind_e kind;
    qid_t     q;
    tx_len_t  len;
  } tx_frame_t;

  // To tx_stream: what it puts together. Byte b of the result comes from the header RAM where
  // b < hdr_len and from landing RAM byte ptr + b elsewhere.
  typedef struct packed {
    logic        empty;      // nothing to move, only space to free
    logic        load;       // into the header RAM, not to the wire
    logic [ 7:0] hdr_len;
    logic [15:0] ptr;
    logic [13:0] len;        // bytes of the result
    logic        csum;       // sum from csum_start on, complement to csum_at
    logic        udp;        // a sum of 0 is sent as ffff
    logic [13:0] csum_start;
    logic [13:0] csum_at;
    logic [12:0] free;       // words of the landing RAM that are free afterwards
    qid_t        q;
  } tx_job_t;

  // With a beat from tx_stream to tx_fifo.
  typedef struct packed {
    logic        first;
    logic        last;
    logic        csum;
    logic        udp;
    logic        odd;        // the sum starts at an odd byte
    logic [13:0] at;         // where it goes
  } tx_beat_t;
endpackage

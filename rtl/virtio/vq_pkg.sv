// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Types of the virtqueue engine, and the map of the control RAM in which it reads rings.
package vq_pkg;
  import ferronic_pkg::*;

  // The three areas of a split virtqueue (virtio 1.2, "Split Virtqueues"), or an absolute address
  // for indirect tables.
  typedef enum logic [1:0] {
    AreaDesc   = 2'd0,
    AreaDriver = 2'd1,
    AreaDevice = 2'd2,
    AreaAbs    = 2'd3
  } vq_area_e;

  // Who asked for a control read; carried in the DMA cookie.
  typedef enum logic [2:0] {
    ClIdx     = 3'd0,  // avail.idx
    ClAvail   = 3'd1,  // available ring entries
    ClDesc    = 3'd2,  // head descriptors
    ClChainRx = 3'd3,  // rest of a chain, or an indirect table
    ClChainTx = 3'd4,
    ClEvent   = 3'd5,  // used_event or avail.flags
    ClGuess   = 3'd6,  // head descriptors, guessed before the available entries are known
    ClAhead   = 3'd7   // the first part of a chain or table, before its buffer is asked for
  } vq_client_e;

  // A control read, relative to an area of a queue, or to `base` for AreaAbs. The data lands at
  // ptr + (address mod 4).
  typedef struct packed {
    vq_area_e    area;
    qid_t        q;
    logic [63:0] base;
    logic [19:0] offset;
    logic [ 8:0] len;
    logic [11:0] ptr;
    vq_client_e  client;
    logic [ 3:0] tag;
  } vq_rd_t;

  // Cookie of a control read: bit 7 is address bit 1, then client and tag.
  typedef struct packed {
    logic       addr1;
    vq_client_e client;
    logic [3:0] tag;
  } vq_cookie_t;

  // A queue as the blocks see it: log2 of its size once it is enabled, RingOff until then.
  typedef logic [3:0] ring_t;
  localparam ring_t RingOff = 4'hf;

  // Size - 1 of an enabled queue.
  function automatic logic [10:0] ring_mask(input ring_t ring);
    for (int i = 0; i < 11; i++) ring_mask[i] = (ring > 4'(i));
  endfunction

  // Its size; 0 if not enabled.
  function automatic logic [11:0] ring_size(input ring_t ring);
    for (int i = 0; i < 12; i++) ring_size[i] = (ring == 4'(i));
  endfunction

  // MSI-X vectors of queues: at most 2 x 64 + 1.
  typedef logic [7:0] vq_vector_t;
  localparam vq_vector_t NoVector = 8'hff;

  // Changes of a queue's configuration, broadcast to the blocks that keep a copy.
  typedef struct packed {
    logic       we_ring;
    logic       we_vector;
    qid_t       q;
    ring_t      ring;
    vq_vector_t vector;
  } vq_cfg_t;

  // Low bits of a ring index: enough for what the prefetch RAM holds of a queue.
  typedef logic [7:0] vq_ptr_t;

  // Virtqueue state is cleared queue by queue, at reset or at a reset of one queue.
  typedef struct packed {
    logic valid;
    qid_t q;
  } vq_clear_t;

  // Entries read at once, and jobs in flight.
  localparam int unsigned JobEntries = 16;
  localparam int unsigned JobSlots = 8;

  // A run of available entries on its way to the prefetch RAM.
  typedef struct packed {
    qid_t       q;
    logic [4:0] count;   // 1 to JobEntries
    logic [2:0] slot;
  } vq_job_t;

  // With it: the ring, where in it the run starts, and which descriptors were guessed, if any.
  typedef struct packed {
    ring_t       ring;
    logic [10:0] entry;
    logic        guessed;
    logic [10:0] guess;
  } vq_guess_t;

  // A descriptor without what no queue can use: a number past the largest table is kept as
  // 0xfff, a length past 128 KiB - 1 as that, so that both still fail every check they failed.
  typedef struct packed {
    logic        indirect;
    logic        write;
    logic        next_valid;
    logic [11:0] next;
    logic [16:0] len;
    logic [63:0] addr;
  } vq_desc_t;

  // A head descriptor, as kept in the prefetch RAM: three block RAMs wide, to the last bit.
  typedef struct packed {
    logic        marker;
    logic [10:0] id;
    vq_desc_t    desc;
  } vq_head_t;

  // Descriptor flags (virtio 1.2, "The Virtqueue Descriptor Table").
  localparam int unsigned DescFlagNext = 0;
  localparam int unsigned DescFlagWrite = 1;
  localparam int unsigned DescFlagIndirect = 2;
  // Not virtio's: with TX_MARKER, in a buffer's first descriptor (TX_EMPTY_CAPS).
  localparam int unsigned DescFlagMarker = 14;

  // From the two words of a descriptor in host memory.
  function automatic vq_desc_t descriptor(input logic [63:0] low, input logic [63:0] high);
    descriptor = '{
      indirect:   high[32 + DescFlagIndirect],
      write:      high[32 + DescFlagWrite],
      next_valid: high[32 + DescFlagNext],
      next:       (|high[63:59]) ? '1 : {1'b0, high[58:48]},
      len:        (|high[31:17]) ? '1 : high[16:0],
      addr:       low
    };
  endfunction

  // Control RAM, 4 KiB.
  localparam int unsigned CtlRamBytes = 4096;
  localparam logic [11:0] CtlAvail   = 12'h000;  // JobSlots x 64 bytes
  localparam logic [11:0] CtlChainRx = 12'h200;  // 256 bytes
  localparam logic [11:0] CtlChainTx = 12'h300;  // 256 bytes
  localparam logic [11:0] CtlIdx     = 12'h400;  // 8 x 8 bytes
  localparam logic [11:0] CtlEvent   = 12'h480;  // 8 x 8 bytes
  localparam logic [11:0] CtlAhead   = 12'h600;  // 8 x 64 bytes
  localparam logic [11:0] CtlDesc    = 12'h800;  // JobSlots x 256 bytes
endpackage
